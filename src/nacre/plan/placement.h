// Searches for the rows that travel between ranks (WG7). At each site, that is, in the forward and
// in the backward pass of each layer, the choice is free. The search compares whole placements by a
// function that predicts the cost of a step; it runs nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nacre/dfg/distribute.h"

namespace nacre {

// The predicted cost of a step. Each number is the largest of any rank.
struct PlacementCost {
  double seconds = 0;
  int64_t received = 0;  // bytes of rows that a rank receives from others
  int64_t missing = 0;   // bytes by which values exceed the memory of a rank; at most 0 if they fit
};
// Returns whether a step with cost `a` is better than one with cost `b`: what fits is better than
// what does not fit; then fewer seconds count, then fewer bytes.
bool cheaper(const PlacementCost& a, const PlacementCost& b);

using PlacementTrial = std::function<PlacementCost(const RankPlacement&)>;

// A choice for all sites, and what a step with this choice costs.
struct PricedRows {
  HaloRows rows = HaloRows::late;
  PlacementCost cost;
};

// Describes the choice at one site.
struct PlacedSite {
  RankSite site;
  HaloRows rows = HaloRows::late;
  int64_t columns = 0;  // number of columns that travel at this site in the chosen placement
  // The choices that lost at this site, each with the cost of a step in which only this site
  // differs. Choices that send the same rows as the chosen one are left out.
  std::vector<PricedRows> lost;
};

// The placement that was chosen, and the costs of those that were not.
struct PlacementChoice {
  RankPlacement placement;
  PlacementCost cost;
  // The slowest measured rate of any rank; 0 if nominal rates were used.
  double link_bytes_per_second = 0;
  std::vector<PricedRows> fixed;  // what a step would cost with one choice for all sites
  std::vector<PlacedSite> sites;
};

// Predicted times are not exact. So something else than `late` at all sites is chosen only if a
// step with `late` is predicted to take this many times as long.
inline constexpr double kLateMargin = 1.03;

// Chooses for a DFG that is not distributed yet. The result is not more expensive than one choice
// of rows for all sites, apart from two margins: `late` may be a little more expensive
// (kLateMargin), and sums in columns must be much cheaper than the others to be chosen. Ranks that
// call this together make the same trials in the same order if their trials return the same
// numbers.
PlacementChoice search_placement(const Dfg& dfg, const PlacementTrial& trial, const RankViews& views = {});
// Returns the predicted cost of a placement that the user asked for. No other placement is tried.
PlacementChoice given_placement(const Dfg& dfg, const RankPlacement& placement, const PlacementTrial& trial,
                                const RankViews& views = {});

// Returns sentences for people: the choice, and what the choices that lost would cost.
std::vector<std::string> placement_lines(const PlacementChoice& choice);
// Returns the choice as JSON, with what the choices that lost would cost.
std::string placement_json(const PlacementChoice& choice);

}  // namespace nacre

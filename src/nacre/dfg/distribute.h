// Turns the DFG of a model into the DFG that one of several ranks computes. Each rank owns a share
// of the vertices and all edges that end at them. The result is the same DFG with communication in
// it: rows of boundary vertices are exchanged, and what is summed over all vertices is summed over
// the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/dfg/node_vector.h"

namespace nacre {

// What travels between ranks for sums over edges. With the first three choices, rows of the halo
// travel. If a value is computed row by row from another one, these three differ in which of the
// two is sent.
enum class HaloRows : uint8_t {
  narrow,  // the value with the fewest columns
  early,   // the operand of a dense product, so that ranks compute products of their halo, too
  late,    // the value that the edges read, so that each product is computed by one rank only
  // The last two choices apply only to sums over edges that PlacedAggregations::can_place()
  // accepts. Everything else then travels as with `late`.
  columns,  // ranks sum some columns over all edges (distribute_columns.h)
  sums,     // ranks sum over the edges that start at their vertices (distribute_sums.h)
};

// Lists all choices, in the order in which the planner tries them.
inline constexpr HaloRows kAllHaloRows[] = {HaloRows::late, HaloRows::narrow, HaloRows::early, HaloRows::columns,
                                            HaloRows::sums};

std::string halo_rows_name(HaloRows rows);
HaloRows parse_halo_rows(const std::string& name);  // throws UserError

// A place where rows travel between ranks: the vertices v(layer), in the forward or in the backward
// pass. At each site the choice is free (WG7).
struct RankSite {
  int layer = 0;
  bool backward = false;
  friend bool operator==(const RankSite&, const RankSite&) = default;
  friend bool operator<(const RankSite& a, const RankSite& b) {
    return a.layer != b.layer ? a.layer < b.layer : a.backward < b.backward;
  }
};
std::string rank_site_name(const RankSite& site);   // for example "layer 0 forward"
RankSite parse_rank_site(const std::string& name);  // throws UserError if there is no such site

// Says which rows travel at each site. All ranks must have the same placement.
struct RankPlacement {
  HaloRows usual = HaloRows::late;  // the choice at all sites that `sites` does not name
  std::map<RankSite, HaloRows> sites;

  HaloRows at(const RankSite& site) const;
  friend bool operator==(const RankPlacement&, const RankPlacement&) = default;
};
// Returns "late", or "late, but early at layer 0 forward and narrow at layer 1 backward".
std::string placement_text(const RankPlacement& placement);

// Says which layers of a rank's blocks hold other edges than those that end at its own vertices. -1
// means that the blocks have no such layer.
struct RankViews {
  // v(whole) and v(whole+1) are all vertices on each rank, and e(whole) are all edges.
  int whole = -1;
  // e(reversed) are the edges that start at the rank's own vertices, turned around: its own
  // vertices are the destinations, and h(reversed) has these and then the far ends of the edges.
  int reversed = -1;
  int rank = 0;                // number of the rank that has these layers
  std::vector<double> shares;  // the share of each rank in the columns
};

// Returns the choices of HaloRows that are possible with these layers.
std::vector<HaloRows> halo_choices(const RankViews& views);

// Returns what one rank computes, for a DFG with or without gradients. v(l) are the rank's own
// vertices in the result, and h(l) its own vertices and its halo. All ranks get the same nodes in
// the same order; only their graphs differ, and with HaloRows::columns the numbers of columns.
// `views` are needed for HaloRows::columns and HaloRows::sums. An input in v(l) may become several
// leaves: NAME in v(l), halo_leaf(NAME) in h(l), whole_leaf(NAME) for the whole graph, and
// reversed_leaf(NAME) (known_values.h) for reversed edges. Degrees of sources must be inputs
// (Sampling::blocks). Throws UserError if the model has rows of single kinds of vertices or learns
// a row for each vertex.
Dfg distribute(const Dfg& dfg, const RankPlacement& placement, const RankViews& views = {});

// A site of a DFG, and how many columns could travel there.
struct SiteColumns {
  RankSite site;
  // How many columns travel at this site if all sites have the same choice. Choices differ in this
  // number if they send the operand of a product in place of its result.
  std::map<HaloRows, int64_t> columns;
};
// Returns the sites of a DFG that is not distributed yet, in their order, with the columns of the
// choices that send rows of halos.
std::vector<SiteColumns> rank_sites(const Dfg& dfg);

// Returns the sites at which a distributed DFG exchanges rows of halos, with the number of columns
// that travel.
std::map<RankSite, int64_t> travelling_columns(const Dfg& distributed);

// Returns for each node whether the forward pass needs it: whether an output that is not a gradient
// depends on it, or an update.
NodeVector<char> needed_forward(const Dfg& dfg);

// Returns the name of the leaf that holds the rows of an input for a rank's own vertices and its
// halo.
std::string halo_leaf(const std::string& input);
// Returns the name of the leaf that holds the rows of an input for all vertices or edges.
std::string whole_leaf(const std::string& input);

}  // namespace nacre

// PlacedAggregations: a way to do sums over edges for which ranks do not exchange rows of their
// halos. distribute() has one such object for each choice that needs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/dfg/distribute.h"
#include "nacre/dfg/known_values.h"

namespace nacre {

class PlacedAggregations {
 public:
  virtual ~PlacedAggregations() = default;
  // Returns whether the aggregation `root` of the model's DFG can be done in this way.
  virtual bool can_place(NodeRef root) const = 0;
  // Adds the aggregation to the DFG of the rank and returns its result, which are rows of the
  // rank's own vertices. own(i) returns the rows of its own vertices, or a parameter, in `out`.
  virtual NodeRef place(NodeRef root, Dfg& out, KnownValues::Own own) = 0;
};

// Returns the way to do aggregations that belongs to a choice; null if ranks exchange rows of their
// halos.
std::unique_ptr<PlacedAggregations> place_of(HaloRows rows, const Dfg& dfg, const RankViews& views);

// Returns whether a node is a sum or a mean over the edges of each source or destination.
bool is_sum_over_edges(const Node& node);
// Returns the values of vertices that the operand of an aggregation reads along an end of the
// edges.
std::vector<NodeRef> gathered_along(const Dfg& dfg, NodeRef root, Attr end);

// What the ranks of a distributed DFG do in a step.
struct PlaceCounts {
  // Number of aggregations that are done at other places than the owners of destinations.
  int placed = 0;
  int halos = 0;  // number of exchanges of rows of halos
};
PlaceCounts count_places(const Dfg& dfg, const RankViews& views);
// Returns a sentence for the user with the numbers of count_places(): how many sums are done in
// columns or at the owners of sources, and how often rows are exchanged. The text is empty if no
// layer or direction was placed in columns or as sums.
std::string place_text(const RankPlacement& placement, const Dfg& dfg, const RankViews& views);

}  // namespace nacre

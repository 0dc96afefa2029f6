// Aggregation at the owners of sources: a rank sums over the edges that start at its own vertices
// and sends the partial sums to the owners of the destinations, which add them up. If many edges of
// a rank lead to few vertices of others, these are fewer rows than its halo. Backwards, the rows of
// the destinations' gradients travel.
#pragma once

#include <map>

#include "nacre/dfg/distribute.h"
#include "nacre/dfg/known_values.h"
#include "nacre/dfg/placed_aggregations.h"

namespace nacre {

class SourceAggregations final : public PlacedAggregations {
 public:
  // `dfg` is the DFG of the model, before distribution.
  SourceAggregations(const Dfg& dfg, const RankViews& views);

  // An aggregation can be done at the owners of sources if it is a sum or a mean of values of edges
  // that are computed from rows of the far end (sources for a sum at destinations) and from numbers
  // of edges that every rank can know.
  bool can_place(NodeRef root) const override;
  NodeRef place(NodeRef root, Dfg& out, KnownValues::Own own) override;

 private:
  // Returns the end of the edges whose rows a value of edges is computed from; Attr::none if it is
  // computed from both ends, or from anything else.
  Attr find_end(NodeRef i) const;
  NodeRef on_edges(NodeRef i, Dfg& out, KnownValues::Own own);
  NodeRef gathered(NodeRef i, Attr end, Dfg& out, KnownValues::Own own);
  NodeRef as_layer(NodeRef own_rows, int layer, Dfg& out) const;

  const Dfg& dfg_;
  int layer_;
  KnownValues known_;
  NodeVector<Attr> end_;
  std::map<NodeRef, NodeRef> made_;
};

}  // namespace nacre

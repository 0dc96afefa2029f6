// Aggregation in columns: for one sum over the edges, each rank holds some columns of the rows of
// all vertices. An all-to-all brings them there (to_columns), the rank sums over all edges of the
// graph, and an all-to-all brings the sums back to the owners of their rows (to_rows). No rank
// needs a halo, and all ranks walk the same edges.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "nacre/dfg/distribute.h"
#include "nacre/dfg/known_values.h"
#include "nacre/dfg/placed_aggregations.h"

namespace nacre {

class ColumnAggregations final : public PlacedAggregations {
 public:
  // `dfg` is the DFG of the model, before distribution.
  ColumnAggregations(const Dfg& dfg, RankViews views);

  // An aggregation can be done in columns if it is a sum or a mean of values of edges that are
  // computed column by column, from rows of vertices and from numbers of edges that every rank can
  // know.
  bool can_place(NodeRef root) const override;
  NodeRef place(NodeRef root, Dfg& out, KnownValues::Own own) override;

 private:
  bool find_sliced(NodeRef i) const;
  std::pair<int64_t, int64_t> columns_of(int64_t width) const;
  NodeRef slice(NodeRef i, Dfg& out, KnownValues::Own own);
  NodeRef to_columns(NodeRef i, Attr end, Dfg& out, KnownValues::Own own);

  const Dfg& dfg_;
  RankViews views_;
  KnownValues known_;
  NodeVector<char> sliced_;  // whether an edge value can be computed column by column
  // The nodes that were already added to `out`: rows of vertices in columns, and values of edges.
  std::map<std::pair<NodeRef, Attr>, NodeRef> columns_;
  std::map<NodeRef, NodeRef> on_edges_;
};

}  // namespace nacre

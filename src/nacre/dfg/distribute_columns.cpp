#include "nacre/dfg/distribute_columns.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/dfg/columns.h"

namespace nacre {

ColumnAggregations::ColumnAggregations(const Dfg& dfg, RankViews views)
    : dfg_(dfg), views_(std::move(views)), known_(dfg, {views_.whole, false}) {
  NACRE_CHECK(views_.whole >= 0, "aggregation in columns needs blocks that have the whole graph");
  for (NodeRef i = 0; i < dfg.size(); ++i) sliced_.push_back(find_sliced(i) ? 1 : 0);
}

bool ColumnAggregations::find_sliced(NodeRef i) const {
  const Node& n = dfg_[i];
  if (n.type.space.kind != SpaceKind::edge || n.type.dims.size() != 1 || n.type.dtype != DType::f32) return false;
  if (is_gather(n)) return true;
  const auto fits = [&](NodeRef in) {
    return sliced_[in] || (known_.known_on_edges(in) && dfg_[in].type.dims.empty());
  };
  return is_plain_elementwise(n.op) && std::all_of(n.inputs.begin(), n.inputs.end(), fits) &&
         std::any_of(n.inputs.begin(), n.inputs.end(), [&](NodeRef in) { return sliced_[in] != 0; });
}

bool ColumnAggregations::can_place(NodeRef root) const {
  return is_sum_over_edges(dfg_[root]) && sliced_[dfg_[root].inputs[0]];
}

// Returns the columns of this rank: where they begin, and how many there are.
std::pair<int64_t, int64_t> ColumnAggregations::columns_of(int64_t width) const {
  const std::vector<int64_t> bounds = column_bounds(width, views_.shares);
  return {bounds[views_.rank], bounds[views_.rank + 1] - bounds[views_.rank]};
}

NodeRef ColumnAggregations::place(NodeRef root, Dfg& out, KnownValues::Own own) {
  Node sum = dfg_[root];
  const ValueType type = sum.type;
  sum.inputs = {slice(sum.inputs[0], out, own)};
  const NodeRef columns = out.add(std::move(sum));
  const auto [begin, len] = columns_of(type.dims[0]);
  return out.add({.op = Op::to_rows, .inputs = {columns}, .ints = {type.space.layer, begin, len, type.dims[0]}});
}

// Returns the rank's columns of a value of edges.
NodeRef ColumnAggregations::slice(NodeRef i, Dfg& out, KnownValues::Own own) {
  if (!sliced_[i]) return known_.add(i, Attr::none, out, own);
  const auto found = on_edges_.find(i);
  if (found != on_edges_.end()) return found->second;
  Node n = dfg_[i];
  const bool gather = is_gather(n);
  for (NodeRef& in : n.inputs) in = gather ? to_columns(in, n.attr, out, own) : slice(in, out, own);
  n.type.space = known_.edges();
  return on_edges_[i] = out.add(std::move(n));
}

NodeRef ColumnAggregations::to_columns(NodeRef i, Attr end, Dfg& out, KnownValues::Own own) {
  const auto found = columns_.find({i, end});
  if (found != columns_.end()) return found->second;
  const NodeRef rows = own(i);
  const auto [begin, len] = columns_of(dfg_[i].type.dims[0]);
  return columns_[{i, end}] =
             out.add({.op = Op::to_columns, .inputs = {rows}, .ints = {known_.vertices(end).layer, begin, len}});
}

}  // namespace nacre

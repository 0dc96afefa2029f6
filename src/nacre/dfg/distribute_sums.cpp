#include "nacre/dfg/distribute_sums.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {

SourceAggregations::SourceAggregations(const Dfg& dfg, const RankViews& views)
    : dfg_(dfg), layer_(views.reversed), known_(dfg, {views.reversed, true}) {
  NACRE_CHECK(layer_ >= 0, "aggregation at the owners of sources needs blocks with reversed edges");
  for (NodeRef i = 0; i < dfg.size(); ++i) end_.push_back(find_end(i));
}

Attr SourceAggregations::find_end(NodeRef i) const {
  const Node& n = dfg_[i];
  if (n.type.space.kind != SpaceKind::edge || n.type.dtype != DType::f32) return Attr::none;
  if (is_gather(n)) return n.attr;
  if (!is_plain_elementwise(n.op)) return Attr::none;
  Attr end = Attr::none;
  for (const NodeRef in : n.inputs) {
    if (known_.known_on_edges(in)) continue;
    if (end_[in] == Attr::none || (end != Attr::none && end_[in] != end)) return Attr::none;
    end = end_[in];
  }
  return end;
}

bool SourceAggregations::can_place(NodeRef root) const {
  const Node& n = dfg_[root];
  return is_sum_over_edges(n) && end_[n.inputs[0]] == (n.attr == Attr::dst ? Attr::src : Attr::dst);
}

// Returns rows of a rank's own vertices as rows of another layer. Both layers have the same own
// vertices, so no bytes move.
NodeRef SourceAggregations::as_layer(NodeRef own_rows, int layer, Dfg& out) const {
  if (out[own_rows].type.space.layer == layer) return own_rows;
  return out.add({.op = Op::index, .inputs = {own_rows}, .attr = Attr::self, .ints = {layer}});
}

// In the layer of reversed edges, own vertices are destinations and the others are in the halo.
NodeRef SourceAggregations::place(NodeRef root, Dfg& out, KnownValues::Own own) {
  const Node& n = dfg_[root];
  const int layer = n.type.space.layer;
  const NodeRef edges = on_edges(n.inputs[0], out, own);
  if (n.attr == Attr::src) {
    const NodeRef sum = out.add({.op = Op::index_add, .inputs = {edges}, .attr = Attr::dst});
    return as_layer(sum, layer, out);
  }
  const NodeRef partial = out.add({.op = Op::index_add, .inputs = {edges}, .attr = Attr::src, .ints = {1}});
  const NodeRef sum = as_layer(out.add({.op = Op::exchange_add, .inputs = {partial}}), layer, out);
  if (n.op == Op::index_add) return sum;
  const NodeRef degree = out.add({.op = Op::degree, .type = {n.type.space, {}}, .attr = Attr::dst});
  return out.add({.op = Op::mul, .inputs = {sum, out.add({.op = Op::inv, .inputs = {degree}})}});
}

NodeRef SourceAggregations::on_edges(NodeRef i, Dfg& out, KnownValues::Own own) {
  if (end_[i] == Attr::none) return known_.add(i, Attr::none, out, own);
  const auto found = made_.find(i);
  if (found != made_.end()) return found->second;
  Node n = dfg_[i];
  const bool gather = is_gather(n);
  for (NodeRef& in : n.inputs) in = gather ? gathered(in, n.attr, out, own) : on_edges(in, out, own);
  if (gather) n.attr = known_.end_in_layer(n.attr);
  n.type.space = known_.edges();
  const NodeRef made = out.add(std::move(n));
  made_[i] = made;
  return made;
}

// Returns what edges read of a value of vertices: the rows of own sources, or the rows of all
// destinations that edges of own sources lead to.
NodeRef SourceAggregations::gathered(NodeRef i, Attr end, Dfg& out, KnownValues::Own own) {
  const NodeRef rows = own(i);
  if (end == Attr::src) return as_layer(rows, layer_ + 1, out);
  return out.add({.op = Op::exchange, .inputs = {as_layer(rows, layer_, out)}});
}

}  // namespace nacre

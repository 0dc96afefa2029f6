#include "nacre/dfg/known_values.h"

#include <algorithm>

#include "nacre/dfg/distribute.h"

namespace nacre {
namespace {

bool on_edges(const Node& node) { return node.type.space.kind == SpaceKind::edge; }

}  // namespace

bool is_gather(const Node& node) {
  return node.op == Op::index && (node.attr == Attr::src || node.attr == Attr::dst) && node.ints.empty();
}

bool is_plain_elementwise(Op op) { return op_info(op).elementwise && op != Op::dropout; }

std::string reversed_leaf(const std::string& input) { return "reversed:" + input; }

KnownValues::KnownValues(const Dfg& dfg, Place place) : dfg_(dfg), place_(place) {
  for (NodeRef i = 0; i < dfg.size(); ++i) known_.push_back(!find_known(i) ? 0 : needs_dst(i) ? kAtDst : kAnywhere);
}

bool KnownValues::is_small(NodeRef i) const {
  return dfg_[i].type.space.kind == SpaceKind::param || dfg_[i].type.space.kind == SpaceKind::type;
}

// Degrees count edges that end at a vertex. A layer of reversed edges does not have all of these.
bool KnownValues::find_known(NodeRef i) const {
  const Node& n = dfg_[i];
  if (is_small(i)) return true;
  if (n.type.space.kind != SpaceKind::vertex && !on_edges(n)) return false;
  switch (n.op) {
    case Op::input:
    case Op::constant:
      return true;
    case Op::degree:
      return n.attr == Attr::dst && !place_.reversed;
    case Op::typed_degree:
      return !place_.reversed;
    case Op::index:
      if (n.attr == Attr::type) return n.ints.size() == 1;
      return is_gather(n) && known(n.inputs[0], n.attr);
    default:
      return is_plain_elementwise(n.op) &&
             std::all_of(n.inputs.begin(), n.inputs.end(), [&](NodeRef in) { return known_[in] != 0; });
  }
}

bool KnownValues::needs_dst(NodeRef i) const {
  const Node& n = dfg_[i];
  if (n.type.space.kind != SpaceKind::vertex) return false;
  return n.op == Op::degree ||
         std::any_of(n.inputs.begin(), n.inputs.end(), [&](NodeRef in) { return known_[in] == kAtDst; });
}

Attr KnownValues::end_in_layer(Attr end) const {
  if (!place_.reversed || (end != Attr::src && end != Attr::dst)) return end;
  return end == Attr::src ? Attr::dst : Attr::src;
}

Space KnownValues::vertices(Attr end) const {
  if (end_in_layer(end) == Attr::dst) return Space::vertex(place_.layer + 1);
  return place_.reversed ? Space::halo(place_.layer) : Space::vertex(place_.layer);
}

NodeRef KnownValues::add(NodeRef i, Attr end, Dfg& out, Own own) {
  if (is_small(i)) return own(i);
  const auto found = made_.find({i, end});
  if (found != made_.end()) return found->second;
  const NodeRef made = make(i, end, out, own);
  made_[{i, end}] = made;
  return made;
}

NodeRef KnownValues::make(NodeRef i, Attr end, Dfg& out, Own own) {
  Node n = dfg_[i];
  if (n.op == Op::input && end_in_layer(end) == Attr::dst) {
    // An input is bound once, for the sources of a layer. The destinations are the first of these
    // sources, so their rows are the first rows.
    const Attr other = end == Attr::dst ? Attr::src : Attr::dst;
    return out.add({.op = Op::index, .inputs = {add(i, other, out, own)}, .attr = Attr::self});
  }
  const bool gather = is_gather(n);
  for (NodeRef& in : n.inputs) in = add(in, gather ? n.attr : end, out, own);
  if (gather) n.attr = end_in_layer(n.attr);
  if (n.op == Op::index && n.attr == Attr::type) n.ints = {place_.layer};
  if (n.op == Op::input) n.name = place_.reversed ? reversed_leaf(n.name) : whole_leaf(n.name);
  n.type.space = on_edges(n) ? edges() : vertices(end);
  return out.add(std::move(n));
}

}  // namespace nacre

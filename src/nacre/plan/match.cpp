#include "nacre/plan/match.h"

namespace nacre {
namespace {

bool is_edge(const Node& node) { return node.type.space.kind == SpaceKind::edge; }

// Splits `mul(wide, factor)`: sets the wide operand and appends the factor; false if `node` is no such product.
bool split_product(const Analysis& an, const Node& node, NodeRef* wide, std::vector<NodeRef>* factors) {
  if (node.op != Op::mul) return false;
  const Node& a = an.dfg()[node.inputs[0]];
  const Node& b = an.dfg()[node.inputs[1]];
  if (!is_edge(a) || !is_edge(b)) return false;
  const bool a_wide = a.type.dims.size() > b.type.dims.size();
  const bool b_wide = b.type.dims.size() > a.type.dims.size();
  if (!a_wide && !b_wide) return false;
  *wide = node.inputs[a_wide ? 0 : 1];
  factors->push_back(node.inputs[a_wide ? 1 : 0]);
  return true;
}

bool all_scalars(const Analysis& an, const std::vector<NodeRef>& factors) {
  for (const NodeRef f : factors) {
    if (an.dfg()[f].type.row_size() != 1) return false;
  }
  return true;
}

}  // namespace

std::optional<GatherProduct> match_gather(const Analysis& an, NodeRef edge_value, std::string* why) {
  GatherProduct match;
  NodeRef at = edge_value;
  while (true) {
    const Node& node = an.dfg()[at];
    if (node.op == Op::reshape) {
      // A reshape of the row does not move elements, but factors found below it must still be prefixes: [H] of [H,D].
      if (!match.factors.empty()) {
        *why = "a reshape between the gather and an edge factor";
        return std::nullopt;
      }
      at = node.inputs[0];
    } else if (node.op == Op::index && (node.attr == Attr::src || node.attr == Attr::dst)) {
      match.x = node.inputs[0];
      match.end = node.attr;
      return match;
    } else if (!split_product(an, node, &at, &match.factors)) {
      *why = "the edge value is not a gathered row times edge factors";
      return std::nullopt;
    }
  }
}

std::optional<TypedProduct> match_typed(const Analysis& an, NodeRef edge_value, std::string* why) {
  TypedProduct match;
  NodeRef at = edge_value;
  while (split_product(an, an.dfg()[at], &at, &match.factors)) {
  }
  const Node& node = an.dfg()[at];
  if (node.op != Op::typed_matmul && node.op != Op::typed_matmul_t) {
    *why = "no typed product";
    return std::nullopt;
  }
  match.typed = at;
  const auto gather = match_gather(an, node.inputs[0], why);
  if (!gather) return std::nullopt;
  match.gather = *gather;
  match.factors.insert(match.factors.end(), gather->factors.begin(), gather->factors.end());
  if (!all_scalars(an, match.factors)) {
    *why = "an edge factor is not a scalar";
    return std::nullopt;
  }
  return match;
}

std::optional<TypedGrad> match_typed_grad(const Analysis& an, NodeRef typed_weight_grad, std::string* why) {
  const Node& node = an.dfg()[typed_weight_grad];
  const auto x = match_gather(an, node.inputs[0], why);
  const auto g = match_gather(an, node.inputs[1], why);
  if (!x || !g) return std::nullopt;
  if (x->end != Attr::src || g->end != Attr::dst) {
    *why = "the operands are not gathered from src and dst";
    return std::nullopt;
  }
  if (!all_scalars(an, x->factors) || !all_scalars(an, g->factors) || x->factors.size() + g->factors.size() > 1) {
    *why = "more than one scalar edge factor";
    return std::nullopt;
  }
  return TypedGrad{*x, *g};
}

}  // namespace nacre

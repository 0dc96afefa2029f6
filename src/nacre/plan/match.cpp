#include "nacre/plan/match.h"

namespace nacre {
namespace {

bool is_edge(const Node& node) { return node.type.space.kind == SpaceKind::edge; }

// Splits `mul(wide, factor)`: sets the wide operand and appends the factor. Returns false if `node`
// is not such a product.
bool split_product(const Dfg& dfg, const Node& node, NodeRef* wide, std::vector<NodeRef>* factors) {
  if (node.op != Op::mul) return false;
  const Node& a = dfg[node.inputs[0]];
  const Node& b = dfg[node.inputs[1]];
  if (!is_edge(a) || !is_edge(b)) return false;
  const bool a_wide = a.type.dims.size() > b.type.dims.size();
  const bool b_wide = b.type.dims.size() > a.type.dims.size();
  if (!a_wide && !b_wide) return false;
  *wide = node.inputs[a_wide ? 0 : 1];
  factors->push_back(node.inputs[a_wide ? 1 : 0]);
  return true;
}

bool all_scalars(const Dfg& dfg, const std::vector<NodeRef>& factors) {
  for (const NodeRef f : factors) {
    if (dfg[f].type.row_size() != 1) return false;
  }
  return true;
}

}  // namespace

std::optional<GatherProduct> match_gather(const Dfg& dfg, NodeRef edge_value, std::string* why) {
  GatherProduct match;
  NodeRef at = edge_value;
  while (true) {
    const Node& node = dfg[at];
    if (node.op == Op::reshape) {
      // A reshape does not move elements, but the dims of a factor of the reshaped row need not be
      // a prefix of the dims of the gathered row.
      if (!match.factors.empty()) {
        *why = "a reshape between the gather and an edge factor";
        return std::nullopt;
      }
      at = node.inputs[0];
    } else if (node.op == Op::index && is_edge(node) && node.attr != Attr::type) {
      match.x = node.inputs[0];
      match.pair = node.attr == Attr::pair_src || node.attr == Attr::pair_dst;
      match.end = node.attr == Attr::src || node.attr == Attr::pair_src ? Attr::src : Attr::dst;
      return match;
    } else if (!split_product(dfg, node, &at, &match.factors)) {
      *why = "the edge value is not a gathered row times edge factors";
      return std::nullopt;
    }
  }
}

std::optional<TypedProduct> match_typed(const Dfg& dfg, NodeRef edge_value, std::string* why) {
  TypedProduct match;
  NodeRef at = edge_value;
  while (split_product(dfg, dfg[at], &at, &match.factors)) {
  }
  const Node& node = dfg[at];
  if (node.op != Op::typed_matmul && node.op != Op::typed_matmul_t) {
    *why = "no typed product";
    return std::nullopt;
  }
  match.typed = at;
  const auto gather = match_gather(dfg, node.inputs[0], why);
  if (!gather || gather->pair) return std::nullopt;
  match.gather = *gather;
  match.factors.insert(match.factors.end(), gather->factors.begin(), gather->factors.end());
  if (!all_scalars(dfg, match.factors)) {
    *why = "an edge factor is not a scalar";
    return std::nullopt;
  }
  return match;
}

std::optional<TypedGrad> match_typed_grad(const Dfg& dfg, NodeRef typed_weight_grad, std::string* why) {
  const Node& node = dfg[typed_weight_grad];
  const auto x = match_gather(dfg, node.inputs[0], why);
  const auto g = match_gather(dfg, node.inputs[1], why);
  if (!x || !g || x->pair || g->pair) return std::nullopt;
  if (x->end != Attr::src || g->end != Attr::dst) {
    *why = "the operands are not gathered from src and dst";
    return std::nullopt;
  }
  if (!all_scalars(dfg, x->factors) || !all_scalars(dfg, g->factors)) {
    *why = "an edge factor is not a scalar";
    return std::nullopt;
  }
  return TypedGrad{*x, *g};
}

namespace {

Attr end_of_pairs(Space space) { return space.kind == SpaceKind::pair_src ? Attr::src : Attr::dst; }

// Matches a sum over the edges of each pair of rows gathered from the other end, with at most one
// scalar factor.
std::optional<GatherProduct> match_sum_by_pair(const Dfg& dfg, NodeRef sum, std::string* why) {
  const Node& node = dfg[sum];
  if (node.op != Op::index_add || !node.type.space.is_pair()) {
    *why = "no sum over the edges of pairs";
    return std::nullopt;
  }
  auto gather = match_gather(dfg, node.inputs[0], why);
  if (!gather) return std::nullopt;
  if (gather->pair || gather->end == end_of_pairs(node.type.space) || gather->factors.size() > 1 ||
      !all_scalars(dfg, gather->factors)) {
    *why = "the sum over a pair's edges is not of the other end's rows with one scalar factor";
    return std::nullopt;
  }
  return gather;
}

}  // namespace

std::optional<PairSum> match_pair_sum(const Dfg& dfg, NodeRef index_add, std::string* why) {
  const Node& root = dfg[index_add];
  const NodeRef typed = root.inputs[0];
  const Node& product = dfg[typed];
  if (!product.type.space.is_pair() || (product.op != Op::typed_matmul && product.op != Op::typed_matmul_t)) {
    *why = "no typed product on pairs";
    return std::nullopt;
  }
  const auto gather = match_sum_by_pair(dfg, product.inputs[0], why);
  if (!gather) return std::nullopt;
  return PairSum{typed, *gather};
}

std::optional<PairGrad> match_pair_grad(const Dfg& dfg, NodeRef typed_weight_grad, std::string* why) {
  const Node& node = dfg[typed_weight_grad];
  if (!dfg[node.inputs[0]].type.space.is_pair()) {
    *why = "not on pairs";
    return std::nullopt;
  }
  for (const bool row_is_x : {true, false}) {
    const Node& rows = dfg[node.inputs[row_is_x ? 0 : 1]];
    if (rows.op != Op::index || rows.attr == Attr::type) continue;
    const auto summed = match_sum_by_pair(dfg, node.inputs[row_is_x ? 1 : 0], why);
    if (summed) return PairGrad{rows.inputs[0], *summed, row_is_x};
  }
  *why = "neither side is read by pair while the other is summed";
  return std::nullopt;
}

}  // namespace nacre

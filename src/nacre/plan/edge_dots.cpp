#include "nacre/plan/edge_dots.h"

#include "nacre/plan/match.h"
#include "nacre/plan/variants/sums.h"

namespace nacre {
namespace {

// Ends names the two nodes whose rows at the ends of each edge are multiplied and added up.
struct Ends {
  NodeRef src = -1;
  NodeRef dst = -1;
};

NodeRef behind_reshapes(const Dfg& dfg, NodeRef i) {
  while (dfg[i].op == Op::reshape) i = dfg[i].inputs[0];
  return i;
}

std::optional<Ends> match_dots(const Dfg& dfg, NodeRef dots) {
  const Node& sum = dfg[dots];
  if (sum.op != Op::row_sum || sum.type.space.kind != SpaceKind::edge) return std::nullopt;
  const Node& product = dfg[sum.inputs[0]];
  if (product.op != Op::mul) return std::nullopt;
  Ends ends;
  for (const NodeRef factor : product.inputs) {
    const Node& gather = dfg[behind_reshapes(dfg, factor)];
    // The kernel needs two rows as long as the product, so a factor that is broadcast does not fit.
    if (gather.op != Op::index || dfg[factor].type.row_size() != product.type.row_size()) return std::nullopt;
    if (gather.attr == Attr::src) ends.src = gather.inputs[0];
    if (gather.attr == Attr::dst) ends.dst = gather.inputs[0];
  }
  if (ends.src < 0 || ends.dst < 0) return std::nullopt;
  return ends;
}

// Returns whether the node is a sum over edges of gathered rows of `gathered` with one factor for
// each edge and head, whose operands are known before `dots`.
bool sums_beside(const Analysis& an, NodeRef sum, NodeRef gathered, NodeRef dots) {
  const Dfg& dfg = an.dfg();
  std::string why;
  const auto match = match_gather(dfg, dfg[sum].inputs[0], &why);
  if (!match || match->pair || match->end == dfg[sum].attr || match->factors.size() != 1) return false;
  const NodeRef factor = match->factors[0];
  return behind_reshapes(dfg, match->x) == behind_reshapes(dfg, gathered) &&
         dfg[factor].type.row_size() == dfg[dots].type.row_size() && match->x < dots && factor < dots;
}

// Returns whether the sum is faster in tiles of columns. A tile has a part of each row, so it
// cannot compute dot products of whole rows.
bool faster_in_tiles(const Analysis& an, NodeRef dots, Space rows) {
  const int64_t edges = an.rows(an.dfg()[dots].type.space);
  return an.dfg()[dots].type.row_size() == 1 && edges >= kReadOften * an.rows(rows);
}

}  // namespace

std::optional<SumBesideDots> find_sum_beside_dots(const Analysis& an, NodeRef dots) {
  const Dfg& dfg = an.dfg();
  const auto ends = match_dots(dfg, dots);
  if (!ends || an.constant(dots)) return std::nullopt;
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    const Node& node = dfg[i];
    if (node.op != Op::index_add || (node.attr != Attr::src && node.attr != Attr::dst) || an.constant(i)) continue;
    if (!node.type.space.on_vertices()) continue;
    const NodeRef own = node.attr == Attr::src ? ends->src : ends->dst;
    const NodeRef gathered = node.attr == Attr::src ? ends->dst : ends->src;
    // The sum of the forward pass cannot be used: it gathers the rows of one end, but the gradients
    // at the other end are not known yet when it runs.
    if (own > i || own > dots || !an.same_rows(node.type.space, dfg[own].type.space)) continue;
    if (dfg[node.inputs[0]].type.space == dfg[dots].type.space && sums_beside(an, i, gathered, dots) &&
        !faster_in_tiles(an, dots, node.type.space))
      return SumBesideDots{i, own};
  }
  return std::nullopt;
}

}  // namespace nacre

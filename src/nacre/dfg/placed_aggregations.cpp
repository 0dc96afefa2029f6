#include "nacre/dfg/placed_aggregations.h"

#include <algorithm>

#include "nacre/dfg/distribute_columns.h"
#include "nacre/dfg/distribute_sums.h"

namespace nacre {

std::unique_ptr<PlacedAggregations> place_of(HaloRows rows, const Dfg& dfg, const RankViews& views) {
  if (rows == HaloRows::columns) return std::make_unique<ColumnAggregations>(dfg, views);
  if (rows == HaloRows::sums) return std::make_unique<SourceAggregations>(dfg, views);
  return nullptr;
}

bool is_sum_over_edges(const Node& node) {
  const bool sum = node.op == Op::index_add && (node.attr == Attr::src || node.attr == Attr::dst) && node.ints.empty();
  return sum || node.op == Op::index_mean;
}

std::vector<NodeRef> gathered_along(const Dfg& dfg, NodeRef root, Attr end) {
  std::vector<NodeRef> found, left = dfg[root].inputs;
  while (!left.empty()) {
    const NodeRef i = left.back();
    const Node& n = dfg[i];
    left.pop_back();
    if (n.type.space.kind != SpaceKind::edge) continue;
    if (!is_gather(n)) {
      left.insert(left.end(), n.inputs.begin(), n.inputs.end());
    } else if (n.attr == end) {
      found.push_back(n.inputs[0]);
    }
  }
  return found;
}

PlaceCounts count_places(const Dfg& dfg, const RankViews& views) {
  PlaceCounts counts;
  for (const Node& n : dfg.nodes()) {
    const bool exchange = n.op == Op::exchange || n.op == Op::exchange_add;
    const bool reversed = views.reversed >= 0 && n.type.space.layer >= views.reversed;
    counts.placed += n.op == Op::to_rows || (exchange && reversed) ? 1 : 0;
    counts.halos += exchange && !reversed ? 1 : 0;
  }
  return counts;
}

std::string place_text(const RankPlacement& placement, const Dfg& dfg, const RankViews& views) {
  const auto chosen = [&](HaloRows rows) {
    return placement.usual == rows || std::any_of(placement.sites.begin(), placement.sites.end(),
                                                  [&](const auto& site) { return site.second == rows; });
  };
  const bool columns = chosen(HaloRows::columns), sums = chosen(HaloRows::sums);
  if (!columns && !sums) return "";
  const auto [placed, halos] = count_places(dfg, views);
  const std::string how = !sums      ? " in columns"
                          : !columns ? " at the owners of sources"
                                     : " in columns or at the owners of sources";
  const std::string times = std::to_string(halos) + (halos == 1 ? " time" : " times") + " in a step";
  if (placed == 0) return "no sum over neighbours of this model is done" + how + "; rows are exchanged " + times;
  std::string text = std::to_string(placed) + (placed == 1 ? " sum" : " sums") + " over neighbours in a step " +
                     (placed == 1 ? "is" : "are") + " done" + how;
  if (halos > 0) text += "; for the rest, rows are exchanged " + times;
  return text;
}

}  // namespace nacre

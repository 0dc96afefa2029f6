#include "nacre/place/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"

namespace nacre {
namespace {

// Methods whose time grows faster than the graph are left out beyond these sizes.
constexpr int64_t kMostEdgesOfMetis = int64_t{1} << 25;
constexpr int64_t kMostWorkOfPagraph = int64_t{1} << 32;  // training vertices × edges

bool takes_long(const std::string& method, const AccessRequest& accesses) {
  if (accesses.graph == nullptr) return method == "metis" || method == "pagraph";
  const int64_t edges = accesses.graph->num_edges();
  if (method == "metis") return edges > kMostEdgesOfMetis;
  return method == "pagraph" && edges * static_cast<int64_t>(accesses.train.size()) > kMostWorkOfPagraph;
}

std::string share_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

}  // namespace

TierReads JudgedPlacement::all() const {
  TierReads sum;
  for (const TierReads& each : reads) {
    sum.own += each.own;
    sum.peer += each.peer;
    sum.host += each.host;
    sum.disk += each.disk;
  }
  return sum;
}

JudgedPlacement judge_placement(const FeaturePlacement& placement, std::span<const float> reads,
                                const PlacementRequest& request) {
  JudgedPlacement judged;
  judged.method = placement.method;
  judged.seconds = placement.seconds;
  judged.reads = expected_reads(placement, reads, request.share);
  judged.cost = largest_cost(judged.reads, request.costs);
  return judged;
}

std::vector<JudgedPlacement> compare_placements(const PlacementRequest& request, std::span<const float> reads,
                                                std::span<const std::string> methods) {
  std::vector<JudgedPlacement> judged;
  for (const std::string& method : methods) {
    if (takes_long(method, request.accesses)) continue;
    PlacementRequest each = request;
    each.method = method;
    judged.push_back(judge_placement(place_features(each), reads, request));
  }
  std::stable_sort(judged.begin(), judged.end(), [&](const JudgedPlacement& a, const JudgedPlacement& b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    return a.method == request.method && b.method != request.method;
  });
  return judged;
}

std::string compared_text(std::span<const JudgedPlacement> methods) {
  std::string text = fmt::format("  {:<12}{:>10}{:>10}{:>10}{:>10}{:>12}{:>9}{:>11}\n", "placement", "own", "peer",
                                 "host", "disk", "loading", "", "placed in");
  for (const JudgedPlacement& each : methods) {
    const TierReads all = each.all();
    const double total = all.total();
    const double first = methods.front().cost;
    text += fmt::format("  {:<12}{:>10}{:>10}{:>10}{:>10}{:>12}{:>9}{:>11}\n", each.method, share_text(all.own, total),
                        share_text(all.peer, total), share_text(all.host, total), share_text(all.disk, total),
                        human_seconds(each.cost), first > 0 ? fmt::format("{:.2f}x", each.cost / first) : "",
                        human_seconds(each.seconds));
  }
  return text;
}

}  // namespace nacre

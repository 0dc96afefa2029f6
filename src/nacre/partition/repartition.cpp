#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/partition/partition.h"
#include "nacre/partition/refine.h"
#include "nacre/partition/view.h"
#include "nacre/partition/work.h"

namespace nacre {
namespace {

// The shares change to the new ones in this many stages. Each stage moves only vertices at the
// borders of the parts, so the borders shift and the cut hardly grows.
constexpr int kStages = 16;
constexpr int kRoundsOfStage = 2;
constexpr int kRoundsAtEnd = 4;
// The work of a part may be this far from its share, relative to the share. New shares follow
// measured times and often differ from the old ones by only a few percent, so the work must be
// closer to them than in a first partition.
constexpr double kCloseToShares = 0.003;

// Returns whether the partition can be changed vertex by vertex: its method allows it, and the
// parts that have vertices are the parts with a share that is not 0.
bool can_change(const Partition& before, std::span<const double> shares, const PartitionOptions& options) {
  if (options.method != PartitionMethod::metis && options.method != PartitionMethod::fennel) return false;
  if (before.num_parts != std::ssize(shares)) return false;
  std::vector<char> used(shares.size(), 0);
  for (const int32_t part : before.part.span()) used[part] = 1;
  for (size_t p = 0; p < shares.size(); ++p) {
    if ((used[p] != 0) != (shares[p] > 0)) return false;
  }
  return std::count(used.begin(), used.end(), 1) > 1;
}

// Moves vertices, stage by stage, until the work of the parts follows the shares.
void change_in_stages(const UndirectedView& view, const Buffer<int64_t>& work, std::span<const double> shares,
                      const PartitionOptions& options, std::vector<uint16_t>& part) {
  const auto parts = static_cast<int>(shares.size());
  const int64_t total = sum_of(work);
  const double imbalance = std::min(options.imbalance, kCloseToShares);
  const std::vector<int64_t> target = balance_of(total, shares, imbalance).target;
  const std::vector<int64_t> first = loads_of(part.data(), work.data(), view.count, parts);
  for (int stage = 1; stage <= kStages; ++stage) {
    std::vector<double> now;
    for (int p = 0; p < parts; ++p) {
      const auto from = static_cast<double>(first[p]), to = static_cast<double>(target[p]);
      now.push_back(from + (to - from) * stage / kStages);
    }
    const Balance balance = balance_of(total, now, imbalance);
    PartDraft draft{view, work.data(), balance, part.data(), loads_of(part.data(), work.data(), view.count, parts)};
    rebalance(draft);
    refine(draft, stage < kStages ? kRoundsOfStage : kRoundsAtEnd);
  }
}

}  // namespace

Partition repartition_graph(const Graph& graph, const Partition& before, std::span<const double> shares,
                            const PartitionOptions& options) {
  check_partition_options(shares, options);
  NACRE_CHECK(before.part.size() == graph.num_dst(), "a partition of another graph cannot be changed");
  if (!can_change(before, shares, options)) return partition_graph(graph, shares, options);
  // The parts without a share get no vertices, so they are left out and the others are numbered
  // without gaps.
  std::vector<uint16_t> number(shares.size(), 0);
  std::vector<int32_t> used;
  std::vector<double> positive;
  for (size_t p = 0; p < shares.size(); ++p) {
    if (shares[p] == 0) continue;
    number[p] = static_cast<uint16_t>(used.size());
    used.push_back(static_cast<int32_t>(p));
    positive.push_back(shares[p]);
  }
  const int64_t count = graph.num_dst();
  std::vector<uint16_t> part(count);
  parallel_for(count, 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) part[v] = number[before.part[v]];
  });
  const UndirectedView view =
      options.method == PartitionMethod::fennel ? in_view(graph) : undirected_view(graph, has_all_reverses(graph));
  const Buffer<int64_t> work = vertex_work(graph, options);
  change_in_stages(view, work, positive, options, part);
  Buffer<int32_t> out(count);
  parallel_for(count, 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) out[v] = used[part[v]];
  });
  return {before.num_parts, std::move(out).freeze()};
}

}  // namespace nacre

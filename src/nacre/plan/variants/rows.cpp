#include "nacre/plan/variants/rows.h"

#include <algorithm>
#include <bit>

namespace nacre {
namespace {

// Rows of at most this many entries are never treated apart: the engine does not list them.
constexpr int64_t kShortRow = 32;
// A group of threads walks a row of at most this many entries in as few turns as a group can.
constexpr int64_t kLargestGroup = 256;

int64_t power_of_two(int64_t least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, least))));
}

std::string mean_row_declines(const RowFacts& f, const DeviceTraits&) {
  return f.mean_degree > 1 ? "" : "a row has at most one edge on average";
}

int64_t mean_row(const RowFacts& f, const DeviceTraits&) {
  return std::min(power_of_two(f.mean_degree), kLargestGroup);
}

std::string apart_declines(const RowFacts& f, const DeviceTraits&) {
  return f.apart ? "" : "this plan does not treat outliers apart (split_outliers)";
}

// Returns the most entries of a piece. With pieces of this size, the warps of every multiprocessor
// are busy several times over, and no piece takes a group of threads very long.
int64_t longest_piece(const RowFacts& f, const DeviceTraits& device) {
  return std::clamp<int64_t>(f.entries / (int64_t{128} * std::max(1, device.multiprocessors)),
                             std::max(f.shortest, kShortRow), 8192);
}

// Returns the most entries of a row that one group of threads works on. The more threads a group
// has, the longer the row may be. The group should not loop over the row more than 16 times,
// because a few long rows would then take longer than all others together.
int64_t longest_of_group(const RowFacts& f, const DeviceTraits&) {
  return 16 * power_of_two(std::clamp<int64_t>(f.mean_degree, 8, 32));
}

}  // namespace

int64_t mean_degree(const Graph& graph, Direction direction) {
  const auto mean = [](int64_t entries, int64_t rows) { return rows == 0 ? 1 : entries / rows; };
  switch (direction) {
    case Direction::by_dst:
      return mean(graph.num_edges(), graph.num_dst());
    case Direction::by_src:
      return mean(graph.num_edges(), graph.num_src());
    case Direction::by_dst_pair:
      return mean(graph.num_edges(), graph.count_pairs(End::dst));
    case Direction::by_src_pair:
      return mean(graph.num_edges(), graph.count_pairs(End::src));
    case Direction::pairs_of_dst:
      return mean(graph.count_pairs(End::dst), graph.num_dst());
    case Direction::pairs_of_src:
      return mean(graph.count_pairs(End::src), graph.num_src());
  }
  return 1;
}

RowFacts row_facts(const PlannedKernel& k) {
  const Kernel& kernel = k.kernel;
  const Graph& graph = k.graph();
  RowFacts f;
  f.entries = graph.num_edges();
  if (kernel.direction == Direction::pairs_of_dst) f.entries = graph.count_pairs(End::dst);
  if (kernel.direction == Direction::pairs_of_src) f.entries = graph.count_pairs(End::src);
  f.mean_degree = mean_degree(graph, kernel.direction);
  f.apart = k.plan.options.split_outliers;
  return f;
}

const VariantList<RowFacts>& row_thread_variants() {
  static const VariantList<RowFacts> list = {
      "threads of a row",
      false,
      {{"for a mean row", mean_row_declines, nullptr, mean_row}, {"for one edge", nullptr, nullptr}},
      {"of {} edges", 1, kLargestGroup}};
  return list;
}

const VariantList<RowFacts>& long_sum_variants() {
  static const VariantList<RowFacts> list = {
      "long rows of sums",
      false,
      {{"in pieces", apart_declines, nullptr, longest_piece}, {"whole", nullptr, nullptr}},
      {"above {} edges", kShortRow}};
  return list;
}

const VariantList<RowFacts>& long_softmax_variants() {
  static const VariantList<RowFacts> list = {"long rows of softmax",
                                             false,
                                             {{"a block of threads each", apart_declines, nullptr, longest_of_group},
                                              {"a group of threads each", nullptr, nullptr}},
                                             {"above {} edges", kShortRow}};
  return list;
}

}  // namespace nacre

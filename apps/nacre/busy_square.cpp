#include "busy_square.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "nacre/base/parallel.h"

namespace nacre::cli {
namespace {

constexpr NodeId kOutside = std::numeric_limits<NodeId>::max();

std::vector<NodeId> numbers_of_busiest(const GTasks& tasks, int64_t side) {
  const auto vertices = static_cast<size_t>(std::max(tasks.graph.num_src(), tasks.graph.num_dst()));
  std::vector<int64_t> edges(vertices, 0);
  for (int64_t i = 0; i < tasks.num_edges(); ++i) {
    ++edges[tasks.src[i]];
    ++edges[tasks.dst[i]];
  }
  std::vector<NodeId> order(vertices);
  std::iota(order.begin(), order.end(), NodeId{0});
  std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return edges[a] > edges[b]; });
  order.resize(std::min(vertices, static_cast<size_t>(std::max<int64_t>(0, side))));
  std::sort(order.begin(), order.end());
  std::vector<NodeId> number(vertices, kOutside);
  for (size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<NodeId>(i);
  return number;
}

Array<NodeId> renumbered(const Array<NodeId>& ids, const std::vector<NodeId>& number) {
  Buffer<NodeId> out(ids.size());
  parallel_for(ids.size(), 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) out[i] = number[ids[i]];
  });
  return std::move(out).freeze();
}

}  // namespace

GTasks among_busiest(const GTasks& tasks, int64_t side) {
  const std::vector<NodeId> number = numbers_of_busiest(tasks, side);
  GTasks seen = tasks;
  seen.src = renumbered(tasks.src, number);
  seen.dst = renumbered(tasks.dst, number);
  return seen;
}

}  // namespace nacre::cli

#include "neighbourhood.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "nacre/base/parallel.h"

namespace nacre::cli {
namespace {

constexpr NodeId kOutside = std::numeric_limits<NodeId>::max();

// Returns a number for each vertex: for at most `side` neighbouring vertices 0, 1, … in the order
// of their ids, and kOutside for all others. Starts at the vertex with most edges and follows edges
// backwards to a few neighbours of each vertex, so that vertices of all degrees are included.
std::vector<NodeId> numbers_of_neighbourhood(const Graph& graph, int64_t side) {
  constexpr int64_t kFan = 8;
  const auto vertices = static_cast<size_t>(std::max(graph.num_src(), graph.num_dst()));
  const size_t wanted = std::min(vertices, static_cast<size_t>(std::max<int64_t>(0, side)));
  int64_t hub = 0;
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    if (graph.in_degree(v) > graph.in_degree(hub)) hub = v;
  }
  std::vector<NodeId> number(vertices, kOutside);
  std::vector<NodeId> met;
  const auto meet = [&](NodeId v) {
    if (met.size() >= wanted || number[v] != kOutside) return false;
    number[v] = 0;
    met.push_back(v);
    return true;
  };
  // If no edge leads to further vertices, the search starts again at the vertex with the lowest id
  // that it has not met.
  if (vertices > 0) meet(static_cast<NodeId>(hub));
  NodeId next = 0;
  for (size_t at = 0; met.size() < wanted; ++at) {
    while (at == met.size()) meet(next++);
    const int64_t v = met[at];
    if (v >= graph.num_dst()) continue;
    int64_t added = 0;
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1] && added < kFan; ++e) {
      added += meet(graph.col_idx()[e]) ? 1 : 0;
    }
  }
  std::sort(met.begin(), met.end());
  for (size_t i = 0; i < met.size(); ++i) number[met[i]] = static_cast<NodeId>(i);
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

GTasks among_neighbours(const GTasks& tasks, int64_t side) {
  const std::vector<NodeId> number = numbers_of_neighbourhood(tasks.graph, side);
  GTasks seen = tasks;
  seen.src = renumbered(tasks.src, number);
  seen.dst = renumbered(tasks.dst, number);
  return seen;
}

}  // namespace nacre::cli

#include "nacre/partition/simple.h"

#include <algorithm>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/partition/work.h"

namespace nacre {
namespace {

// Returns parts of the vertices, which are dealt out in the order vertex(0), vertex(1), …. A part
// is full when the middle of the next vertex's work lies beyond the work that this part and those
// before it should have.
template <class Vertex>
std::vector<uint16_t> deal(const Buffer<int64_t>& work, std::span<const double> shares, const Vertex& vertex) {
  const Balance balance = balance_of(sum_of(work), shares, 0);
  std::vector<uint16_t> part(work.size());
  int p = 0;
  int64_t given = 0, limit = balance.target[0];
  for (int64_t i = 0; i < work.size(); ++i) {
    const int64_t v = vertex(i);
    while (p + 1 < balance.parts() && given + work[v] / 2 >= limit) limit += balance.target[++p];
    part[v] = static_cast<uint16_t>(p);
    given += work[v];
  }
  return part;
}

}  // namespace

std::vector<uint16_t> range_parts(const Graph& graph, std::span<const double> shares, const PartitionOptions& options) {
  return deal(vertex_work(graph, options), shares, [](int64_t i) { return i; });
}

std::vector<uint16_t> random_parts(const Graph& graph, std::span<const double> shares,
                                   const PartitionOptions& options) {
  // These are sort keys: a random number in the upper bits and the vertex in the lower ones.
  // Vertices are distinct, so the order is unique.
  Buffer<uint64_t> order(graph.num_dst());
  parallel_for(order.size(), 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      const auto vertex = static_cast<uint64_t>(v);
      order[v] = (mix_key(options.seed, vertex) & ~uint64_t{0xFFFFFFFF}) | vertex;
    }
  });
  std::sort(order.begin(), order.end());
  return deal(vertex_work(graph, options), shares,
              [&](int64_t i) { return static_cast<int64_t>(order[i] & 0xFFFFFFFF); });
}

}  // namespace nacre

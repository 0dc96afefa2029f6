// A graph is its own transpose if the multiset of its edges equals that of the reversed edges. The
// edges of both are hashed, and the 64-bit hashes are summed; equal sums mean equal multisets, but
// for one chance in 2^64.
#include "nacre/place/drawers.h"

#include <atomic>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

bool own_transpose(const Graph& graph) {
  std::atomic<uint64_t> difference{0};
  parallel_for(graph.num_nodes(), 1 << 12, [&](int64_t begin, int64_t end) {
    uint64_t sum = 0;
    for (int64_t v = begin; v < end; ++v) {
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
        const uint64_t source = graph.col_idx()[e], destination = static_cast<uint64_t>(v);
        sum += mix_key(source, destination) - mix_key(destination, source);
      }
    }
    difference.fetch_add(sum, std::memory_order_relaxed);
  });
  return difference == 0;
}

}  // namespace

DrawerLists::DrawerLists(const Graph& graph, bool ids) : graph_(graph) {
  if (!ids && own_transpose(graph)) return;
  // The transpose is needed only while this object lives. So it is made by a copy of the graph,
  // which shares the arrays of `graph` but keeps the transpose to itself: `graph` does not keep it.
  if (!graph.has_out()) transposed_ = Graph::trusted(graph.arrays());
  out_ = graph.has_out() ? &graph.out() : &transposed_.out();
}

}  // namespace nacre

#include "nacre/partition/view.h"

#include <atomic>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {

bool has_all_reverses(const Graph& graph) {
  std::atomic<uint64_t> difference{0};  // sums of whole numbers do not depend on their order
  parallel_for(graph.num_dst(), 1 << 12, [&](int64_t b, int64_t e) {
    uint64_t sum = 0;
    for (int64_t v = b; v < e; ++v) {
      const auto dst = static_cast<uint64_t>(v);
      for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
        const uint64_t src = graph.col_idx()[i];
        sum += mix_key(src, dst) - mix_key(dst, src);
      }
    }
    difference += sum;
  });
  return difference == 0;
}

UndirectedView in_view(const Graph& graph) { return {graph.num_dst(), graph.row_ptr().data(), graph.col_idx().data()}; }

UndirectedView undirected_view(const Graph& graph, bool symmetric) {
  UndirectedView view = in_view(graph);
  if (!symmetric) {
    view.back_ptr = graph.out().row_ptr.data();
    view.back = graph.out().dst.data();
  }
  return view;
}

}  // namespace nacre

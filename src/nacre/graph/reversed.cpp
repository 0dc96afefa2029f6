#include "nacre/graph/reversed.h"

#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kChunk = 1 << 14;

template <class T>
Array<T> in_order(const Array<T>& values, const Array<EdgeId>& order) {
  if (values.empty()) return {};
  Buffer<T> out(order.size());
  parallel_for(order.size(), kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = values[order[i]];
  });
  return std::move(out).freeze();
}

}  // namespace

Graph reversed_graph(const Graph& graph) {
  const OutCsc& out = graph.out();
  GraphArrays arrays;
  arrays.num_src = graph.num_dst();
  arrays.num_dst = graph.num_src();
  arrays.row_ptr = out.row_ptr;
  arrays.col_idx = out.dst;
  arrays.edge_weight = in_order(graph.edge_weight(), out.edge_id);
  arrays.edge_type = in_order(graph.edge_type(), out.edge_id);
  arrays.num_edge_types = graph.num_edge_types();
  return Graph::trusted(std::move(arrays));
}

}  // namespace nacre

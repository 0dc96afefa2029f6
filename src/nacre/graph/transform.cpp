// Edge lists to graphs, and graphs to other graphs.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/graph/graph.h"
#include "nacre/graph/radix.h"

namespace nacre {
namespace {

template <class T>
Array<T> permuted(const T* values, const Buffer<EdgeId>& order) {
  Buffer<T> out(order.size());
  parallel_for(order.size(), 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) out[i] = values[order[i]];
  });
  return std::move(out).freeze();
}

EdgeList to_edge_list(const Graph& graph) {
  EdgeList list;
  list.num_nodes = graph.num_src();
  list.src.assign(graph.col_idx().begin(), graph.col_idx().end());
  list.dst.assign(graph.edge_dst().begin(), graph.edge_dst().end());
  list.weight.assign(graph.edge_weight().begin(), graph.edge_weight().end());
  list.type.assign(graph.edge_type().begin(), graph.edge_type().end());
  list.num_types = graph.num_edge_types();
  return list;
}

void append(EdgeList& list, NodeId src, NodeId dst, float weight, uint16_t type) {
  list.src.push_back(src);
  list.dst.push_back(dst);
  if (!list.weight.empty()) list.weight.push_back(weight);
  if (!list.type.empty()) list.type.push_back(type);
}

}  // namespace

Graph build_graph(EdgeList edges, const std::string& where) {
  const auto count = static_cast<int64_t>(edges.src.size());
  if (edges.num_nodes > INT64_C(0xFFFFFFFF)) throw UserError(where, "more than 4,294,967,295 vertices");
  if (count > INT64_C(0xFFFFFFFF)) throw UserError(where, "more than 4,294,967,295 edges", "partition the graph");
  const auto fits = [&](size_t size) { return size == 0 || size == edges.src.size(); };
  NACRE_CHECK(edges.dst.size() == edges.src.size() && fits(edges.weight.size()) && fits(edges.type.size()),
              "edge list columns differ in length");
  for (const auto* column : {&edges.src, &edges.dst}) {
    for (const NodeId v : *column) {
      if (v >= edges.num_nodes) {
        throw UserError(where, "an edge names vertex " + std::to_string(v) + ", but there are only " +
                                   std::to_string(edges.num_nodes) + " vertices");
      }
    }
  }
  // Stable by source, then stable by destination: (dst, src, input order).
  GroupedBy by_src = group_stable(edges.src.data(), count, edges.num_nodes);
  const Array<NodeId> dst_by_src = permuted(edges.dst.data(), by_src.order);
  GroupedBy by_dst = group_stable(dst_by_src.data(), count, edges.num_nodes);
  Buffer<EdgeId> order(count);
  parallel_for(count, 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) order[i] = by_src.order[by_dst.order[i]];
  });
  GraphArrays arrays;
  arrays.num_src = arrays.num_dst = edges.num_nodes;
  arrays.row_ptr = std::move(by_dst.offsets).freeze();
  arrays.col_idx = permuted(edges.src.data(), order);
  if (!edges.weight.empty()) arrays.edge_weight = permuted(edges.weight.data(), order);
  if (!edges.type.empty()) arrays.edge_type = permuted(edges.type.data(), order);
  arrays.num_edge_types = edges.num_types;
  return {std::move(arrays), where};
}

Graph add_self_loops(const Graph& graph) {
  std::vector<char> has_loop(static_cast<size_t>(graph.num_src()), 0);
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    const NodeId* row = graph.col_idx().data() + graph.row_ptr()[v];
    has_loop[v] = std::binary_search(row, row + graph.in_degree(v), static_cast<NodeId>(v));
  }
  EdgeList list = to_edge_list(graph);
  const auto loop_type = static_cast<uint16_t>(list.num_types);
  if (!list.type.empty()) {
    if (list.num_types == 65535) throw UserError("self loops", "no edge type is left for the loops");
    ++list.num_types;
  }
  for (int64_t v = 0; v < graph.num_src(); ++v) {
    if (!has_loop[v]) append(list, static_cast<NodeId>(v), static_cast<NodeId>(v), 1.0F, loop_type);
  }
  return build_graph(std::move(list), "graph with self loops");
}

Graph make_undirected(const Graph& graph) {
  EdgeList list = to_edge_list(graph);
  const auto count = static_cast<int64_t>(list.src.size());
  for (int64_t i = 0; i < count; ++i) {
    if (list.src[i] == list.dst[i]) continue;
    append(list, list.dst[i], list.src[i], list.weight.empty() ? 1.0F : list.weight[i],
           list.type.empty() ? uint16_t{0} : list.type[i]);
  }
  const Graph both = build_graph(std::move(list), "undirected graph");
  EdgeList unique;
  unique.num_nodes = graph.num_src();
  unique.num_types = graph.num_edge_types();
  for (int64_t v = 0; v < both.num_dst(); ++v) {
    for (int64_t i = both.row_ptr()[v]; i < both.row_ptr()[v + 1]; ++i) {
      if (i > both.row_ptr()[v] && both.col_idx()[i] == both.col_idx()[i - 1]) continue;
      unique.src.push_back(both.col_idx()[i]);
      unique.dst.push_back(static_cast<NodeId>(v));
      if (both.weighted()) unique.weight.push_back(both.edge_weight()[i]);
      if (both.typed()) unique.type.push_back(both.edge_type()[i]);
    }
  }
  return build_graph(std::move(unique), "undirected graph");
}

Graph assign_relations(const Graph& graph, int relations) {
  NACRE_CHECK(relations >= 1 && relations <= 65535, "relations must be 1 to 65535");
  Buffer<uint16_t> type(graph.num_edges());
  const Array<NodeId>& dst = graph.edge_dst();
  parallel_for(graph.num_edges(), 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      type[i] = static_cast<uint16_t>(mix_key(graph.col_idx()[i], dst[i]) % static_cast<uint64_t>(relations));
    }
  });
  GraphArrays arrays = graph.arrays();
  arrays.edge_type = std::move(type).freeze();
  arrays.num_edge_types = relations;
  return {std::move(arrays), "graph"};
}

}  // namespace nacre

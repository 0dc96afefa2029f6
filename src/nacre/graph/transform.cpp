// Makes graphs from edge lists, and graphs from other graphs.
#include <algorithm>
#include <atomic>
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

template <class T>
void give_back(std::vector<T>& column) {
  std::vector<T>().swap(column);
}

constexpr int64_t kRows = 1 << 14;

bool has_sorted_rows(const Graph& graph) {
  std::atomic<bool> sorted{true};
  parallel_for(graph.num_dst(), kRows, [&](int64_t b, int64_t e) {
    const NodeId* col = graph.col_idx().data();
    for (int64_t v = b; v < e && sorted; ++v) {
      if (!std::is_sorted(col + graph.row_ptr()[v], col + graph.row_ptr()[v + 1])) sorted = false;
    }
  });
  return sorted;
}

bool has_loop(const Graph& graph, int64_t v) {
  const NodeId* row = graph.col_idx().data() + graph.row_ptr()[v];
  return std::binary_search(row, row + graph.in_degree(v), static_cast<NodeId>(v));
}

// Collects the edges of a new graph and makes the graph of them.
class EdgeBuffers {
 public:
  EdgeBuffers(int64_t edges, bool weighted, bool typed)
      : col_(edges), weight_(weighted ? edges : 0), type_(typed ? edges : 0) {}

  struct Edge {
    NodeId src;
    float weight;
    uint16_t type;
  };
  void set(int64_t at, const Edge& edge) {
    col_[at] = edge.src;
    if (weight_.size() > 0) weight_[at] = edge.weight;
    if (type_.size() > 0) type_[at] = edge.type;
  }
  // Writes an edge from `src` to position `to`, with the weight and the type of an edge of `from`.
  void copy(const Graph& from, int64_t edge, NodeId src, int64_t to) {
    set(to,
        {src, from.weighted() ? from.edge_weight()[edge] : 1.0F, from.typed() ? from.edge_type()[edge] : uint16_t{0}});
  }
  Graph graph(int64_t vertices, Buffer<int64_t> row_ptr, int edge_types) && {
    GraphArrays arrays;
    arrays.num_src = arrays.num_dst = vertices;
    arrays.row_ptr = std::move(row_ptr).freeze();
    arrays.col_idx = std::move(col_).freeze();
    if (weight_.size() > 0) arrays.edge_weight = std::move(weight_).freeze();
    if (type_.size() > 0) arrays.edge_type = std::move(type_).freeze();
    arrays.num_edge_types = edge_types;
    return {std::move(arrays), "graph"};
  }

 private:
  Buffer<NodeId> col_;
  Buffer<float> weight_;
  Buffer<uint16_t> type_;
};

// Calls take(other, edge) for every vertex that an edge connects with `v`, in ascending order and
// each vertex once. `edge` is the first edge between the two; edges that lead to `v` come first.
template <class Take>
void for_each_neighbour(const Graph& graph, int64_t v, const Take& take) {
  const OutCsc& out = graph.out();
  int64_t in = graph.row_ptr()[v], back = out.row_ptr[v];
  const int64_t in_end = graph.row_ptr()[v + 1], back_end = out.row_ptr[v + 1];
  for (int64_t last = -1; in < in_end || back < back_end;) {
    const bool own = back == back_end || (in < in_end && graph.col_idx()[in] <= out.dst[back]);
    const NodeId other = own ? graph.col_idx()[in] : out.dst[back];
    const int64_t edge = own ? in : out.edge_id[back];
    ++(own ? in : back);
    if (other == last) continue;
    last = other;
    take(other, edge);
  }
}

// The functions *_by_sorting handle graphs whose rows are not sorted, which only files made by
// other programs have.
Graph add_loops_by_sorting(const Graph& graph) {
  EdgeList list = to_edge_list(graph);
  const auto loop_type = static_cast<uint16_t>(list.num_types);
  if (!list.type.empty()) ++list.num_types;
  for (int64_t v = 0; v < graph.num_src(); ++v) {
    const NodeId* row = graph.col_idx().data() + graph.row_ptr()[v];
    if (std::find(row, row + graph.in_degree(v), static_cast<NodeId>(v)) == row + graph.in_degree(v))
      append(list, static_cast<NodeId>(v), static_cast<NodeId>(v), 1.0F, loop_type);
  }
  return build_graph(std::move(list), "graph with self loops");
}

Graph make_undirected_by_sorting(const Graph& graph) {
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

}  // namespace

Graph build_graph(EdgeList edges, const std::string& where) {
  const auto count = static_cast<int64_t>(edges.src.size());
  if (edges.num_nodes > INT64_C(0xFFFFFFFF)) throw UserError(where, "has more than 4,294,967,295 nodes");
  if (count > INT64_C(0xFFFFFFFF))
    throw UserError(where, "has more than 4,294,967,295 edges", "split the graph into several smaller ones");
  const auto fits = [&](size_t size) { return size == 0 || size == edges.src.size(); };
  NACRE_CHECK(edges.dst.size() == edges.src.size() && fits(edges.weight.size()) && fits(edges.type.size()),
              "the columns of the edge list differ in length");
  for (const auto* column : {&edges.src, &edges.dst}) {
    for (const NodeId v : *column) {
      if (v >= edges.num_nodes) {
        throw UserError(where, "an edge names node " + std::to_string(v) + ", but there are only " +
                                   std::to_string(edges.num_nodes) + " nodes");
      }
    }
  }
  // A stable sort by source and a stable sort by destination give the order (dst, src, input
  // order). Arrays that are no longer needed are freed at once, so that build_graph_bytes()
  // (costs.h) is all that this takes.
  Buffer<EdgeId> by_src = group_stable(edges.src.data(), count, edges.num_nodes).order;
  Array<NodeId> dst_by_src = permuted(edges.dst.data(), by_src);
  give_back(edges.dst);
  GroupedBy by_dst = group_stable(dst_by_src.data(), count, edges.num_nodes);
  dst_by_src = {};
  Buffer<EdgeId> order = std::move(by_dst.order);
  parallel_for(count, 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) order[i] = by_src[order[i]];
  });
  by_src = {};
  GraphArrays arrays;
  arrays.num_src = arrays.num_dst = edges.num_nodes;
  arrays.row_ptr = std::move(by_dst.offsets).freeze();
  arrays.col_idx = permuted(edges.src.data(), order);
  give_back(edges.src);
  if (!edges.weight.empty()) arrays.edge_weight = permuted(edges.weight.data(), order);
  give_back(edges.weight);
  if (!edges.type.empty()) arrays.edge_type = permuted(edges.type.data(), order);
  arrays.num_edge_types = edges.num_types;
  return {std::move(arrays), where};
}

Graph add_self_loops(const Graph& graph) {
  if (graph.typed() && graph.num_edge_types() == 65535)
    throw UserError("self loops",
                    "the loops need an edge type of their own, but the graph already has the most possible, 65,535");
  if (!has_sorted_rows(graph)) return add_loops_by_sorting(graph);
  const int64_t vertices = graph.num_dst();
  Buffer<int64_t> row_ptr(vertices + 1);
  parallel_for(vertices, kRows, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) row_ptr[v + 1] = graph.in_degree(v) + (has_loop(graph, v) ? 0 : 1);
  });
  row_ptr[0] = 0;
  for (int64_t v = 0; v < vertices; ++v) row_ptr[v + 1] += row_ptr[v];
  EdgeBuffers out(row_ptr[vertices], graph.weighted(), graph.typed());
  parallel_for(vertices, kRows, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      const NodeId* row = graph.col_idx().data();
      const int64_t begin = graph.row_ptr()[v], end = graph.row_ptr()[v + 1];
      const int64_t at = std::lower_bound(row + begin, row + end, static_cast<NodeId>(v)) - row;
      int64_t to = row_ptr[v];
      for (int64_t i = begin; i < at; ++i) out.copy(graph, i, row[i], to++);
      if (to - row_ptr[v] + end - at < row_ptr[v + 1] - row_ptr[v])
        out.set(to++, {static_cast<NodeId>(v), 1.0F, static_cast<uint16_t>(graph.num_edge_types())});
      for (int64_t i = at; i < end; ++i) out.copy(graph, i, row[i], to++);
    }
  });
  return std::move(out).graph(vertices, std::move(row_ptr), graph.num_edge_types() + (graph.typed() ? 1 : 0));
}

Graph make_undirected(const Graph& graph) {
  if (!has_sorted_rows(graph)) return make_undirected_by_sorting(graph);
  const int64_t vertices = graph.num_dst();
  graph.out();  // builds the out-CSC with all threads, before the loops below walk it
  Buffer<int64_t> row_ptr(vertices + 1);
  parallel_for(vertices, kRows, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      int64_t count = 0;
      for_each_neighbour(graph, v, [&](NodeId, int64_t) { ++count; });
      row_ptr[v + 1] = count;
    }
  });
  row_ptr[0] = 0;
  for (int64_t v = 0; v < vertices; ++v) row_ptr[v + 1] += row_ptr[v];
  EdgeBuffers out(row_ptr[vertices], graph.weighted(), graph.typed());
  parallel_for(vertices, kRows, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      int64_t to = row_ptr[v];
      for_each_neighbour(graph, v, [&](NodeId other, int64_t edge) { out.copy(graph, edge, other, to++); });
    }
  });
  return std::move(out).graph(vertices, std::move(row_ptr), graph.num_edge_types());
}

Graph assign_relations(const Graph& graph, int relations) {
  NACRE_CHECK(relations >= 1 && relations <= 65535, "the number of relations must be 1 to 65535");
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

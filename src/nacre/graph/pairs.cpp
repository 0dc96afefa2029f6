// Edges are sorted by (type, vertex) with two stable passes. The graph itself is the first pass:
// in-CSR order is sorted by destination, out-CSC order by source. A new pair starts wherever the
// type or the vertex changes.
#include "nacre/graph/pairs.h"

#include <algorithm>
#include <numeric>

#include "nacre/base/parallel.h"
#include "nacre/graph/radix.h"

namespace nacre {
namespace {

constexpr int64_t kPairChunk = 1 << 16;

// Returns the positions of the edges, sorted by (type, vertex at `end`).
Buffer<EdgeId> sorted_edges(const Graph& graph, End end) {
  const int64_t edges = graph.num_edges();
  const EdgeId* by_vertex = end == End::src ? graph.out().edge_id.data() : nullptr;
  Buffer<EdgeId> order(edges);
  const auto at = [&](int64_t i) { return by_vertex == nullptr ? static_cast<EdgeId>(i) : by_vertex[i]; };
  if (!graph.typed()) {
    parallel_for(edges, kPairChunk, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) order[i] = at(i);
    });
    return order;
  }
  Buffer<NodeId> types(edges);
  const uint16_t* type = graph.edge_type().data();
  parallel_for(edges, kPairChunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) types[i] = type[at(i)];
  });
  const GroupedBy grouped = group_stable(types.data(), edges, graph.num_edge_types());
  parallel_for(edges, kPairChunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) order[i] = at(grouped.order[i]);
  });
  return order;
}

}  // namespace

PairIndex make_pairs(const Graph& graph, End end) {
  const int64_t edges = graph.num_edges();
  const int64_t vertices = end == End::src ? graph.num_src() : graph.num_dst();
  const Array<NodeId>& own = end == End::src ? graph.col_idx() : graph.edge_dst();
  const Array<NodeId>& far = end == End::src ? graph.edge_dst() : graph.col_idx();
  const uint16_t* type = graph.typed() ? graph.edge_type().data() : nullptr;
  const auto type_of = [&](EdgeId e) { return type == nullptr ? uint16_t{0} : type[e]; };
  Buffer<EdgeId> edge = sorted_edges(graph, end);
  const auto starts = [&](int64_t i) {
    return i == 0 || own[edge[i]] != own[edge[i - 1]] || type_of(edge[i]) != type_of(edge[i - 1]);
  };

  // first[c] becomes the number of the first pair of chunk c, so that chunks can be filled
  // independently.
  const int64_t chunks = (edges + kPairChunk - 1) / kPairChunk;
  std::vector<int64_t> first(static_cast<size_t>(chunks) + 1, 0);
  parallel_for(edges, kPairChunk, [&](int64_t b, int64_t e) {
    int64_t n = 0;
    for (int64_t i = b; i < e; ++i) n += starts(i) ? 1 : 0;
    first[static_cast<size_t>(b / kPairChunk) + 1] = n;
  });
  for (int64_t c = 0; c < chunks; ++c) first[c + 1] += first[c];

  PairIndex p;
  p.num_pairs = first.back();
  Buffer<NodeId> vertex(p.num_pairs);
  Buffer<uint16_t> pair_type(p.num_pairs);
  Buffer<EdgeId> of_edge(edges);
  Buffer<int64_t> edge_ptr(p.num_pairs + 1);
  Buffer<NodeId> other(edges);
  edge_ptr[p.num_pairs] = edges;
  parallel_for(edges, kPairChunk, [&](int64_t b, int64_t e) {
    int64_t pair = first[b / kPairChunk] - 1;
    for (int64_t i = b; i < e; ++i) {
      if (starts(i)) {
        ++pair;
        vertex[pair] = own[edge[i]];
        pair_type[pair] = type_of(edge[i]);
        edge_ptr[pair] = i;
      }
      of_edge[edge[i]] = static_cast<EdgeId>(pair);
      other[i] = far[edge[i]];
    }
  });
  Buffer<int64_t> type_ptr(graph.num_edge_types() + 1);
  for (int64_t t = 0; t <= graph.num_edge_types(); ++t) {
    type_ptr[t] = std::lower_bound(pair_type.begin(), pair_type.end(), t) - pair_type.begin();
  }
  GroupedBy by_vertex = group_stable(vertex.data(), p.num_pairs, vertices);
  p.type_ptr = std::move(type_ptr).freeze();
  p.vertex = std::move(vertex).freeze();
  p.type = std::move(pair_type).freeze();
  p.of_edge = std::move(of_edge).freeze();
  p.edge_ptr = std::move(edge_ptr).freeze();
  p.edge = std::move(edge).freeze();
  p.other = std::move(other).freeze();
  p.vertex_ptr = std::move(by_vertex.offsets).freeze();
  p.pair = std::move(by_vertex.order).freeze();
  return p;
}

// Counts vertex by vertex: an edge begins a new pair if no earlier edge of the vertex has its type.
int64_t count_pairs(const Graph& graph, End end) {
  const bool src = end == End::src;
  const int64_t vertices = src ? graph.num_src() : graph.num_dst();
  const int64_t* ptr = src ? graph.out().row_ptr.data() : graph.row_ptr().data();
  const EdgeId* edge = src ? graph.out().edge_id.data() : nullptr;
  const uint16_t* type = graph.typed() ? graph.edge_type().data() : nullptr;
  std::vector<int64_t> found(static_cast<size_t>(vertices / kPairChunk) + 1, 0);
  parallel_for(vertices, kPairChunk, [&](int64_t b, int64_t e) {
    std::vector<int64_t> last(graph.num_edge_types(), -1);
    int64_t n = 0;
    for (int64_t v = b; v < e; ++v) {
      for (int64_t i = ptr[v]; i < ptr[v + 1]; ++i) {
        const size_t t = type == nullptr ? 0 : type[edge == nullptr ? i : edge[i]];
        n += last[t] != v ? 1 : 0;
        last[t] = v;
      }
    }
    found[b / kPairChunk] = n;
  });
  return std::accumulate(found.begin(), found.end(), int64_t{0});
}

int64_t PairIndex::bytes() const {
  return num_pairs * (4 + 2 + 8 + 4) + edge.size() * 12 + (vertex_ptr.size() + type_ptr.size()) * 8;
}

}  // namespace nacre

// Graphs as plain lists of edges, for comparison.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "nacre/graph/graph.h"
#include "support/rng.h"

namespace nacre::test {

struct Edge {
  NodeId dst;
  NodeId src;
  size_t order = 0;  // position in the input
  float weight = 1;
  uint16_t type = 0;
};

// Returns the edges in the order in which a graph keeps them: by destination, source, input order.
inline std::vector<Edge> sorted_edges(const EdgeList& list) {
  std::vector<Edge> edges;
  for (size_t i = 0; i < list.src.size(); ++i) {
    edges.push_back({list.dst[i], list.src[i], i, list.weight.empty() ? 1 : list.weight[i],
                     list.type.empty() ? uint16_t{0} : list.type[i]});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tuple(a.dst, a.src, a.order) < std::tuple(b.dst, b.src, b.order);
  });
  return edges;
}

inline std::vector<Edge> edges_of(const Graph& graph) {
  std::vector<Edge> edges;
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
      edges.push_back({static_cast<NodeId>(v), graph.col_idx()[i], static_cast<size_t>(i),
                       graph.weighted() ? graph.edge_weight()[i] : 1,
                       graph.typed() ? graph.edge_type()[i] : uint16_t{0}});
    }
  }
  return edges;
}

inline bool same_edges(const std::vector<Edge>& a, const std::vector<Edge>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Edge& x, const Edge& y) {
    return std::tuple(x.dst, x.src, x.weight, x.type) == std::tuple(y.dst, y.src, y.weight, y.type);
  });
}

struct ListOptions {
  int64_t nodes = 10;
  int64_t edges = 40;
  bool weighted = false;
  bool typed = false;
  bool skewed = false;  // half of the edges point at one vertex
  uint64_t seed = 1;
};

inline EdgeList random_list(const ListOptions& how) {
  Rng rng(how.seed);
  EdgeList list;
  list.num_nodes = how.nodes;
  list.num_types = how.typed ? 6 : 1;
  for (int64_t i = 0; i < how.edges; ++i) {
    list.src.push_back(static_cast<NodeId>(rng.below(how.nodes)));
    list.dst.push_back(how.skewed && i % 2 == 0 ? static_cast<NodeId>(how.nodes / 2)
                                                : static_cast<NodeId>(rng.below(how.nodes)));
    if (how.weighted) list.weight.push_back(static_cast<float>(rng.uniform(0.1, 2)));
    if (how.typed) list.type.push_back(static_cast<uint16_t>(rng.below(6)));
  }
  return list;
}

// Returns every combination on small graphs, and a few graphs that are large enough for several
// chunks of every loop.
inline std::vector<EdgeList> all_lists() {
  std::vector<EdgeList> lists;
  for (const int64_t nodes : {1, 2, 17, 300}) {
    for (const int64_t edges : {0, 1, 60, 500}) {
      for (int bits = 0; bits < 8; ++bits) {
        lists.push_back(random_list({nodes, edges, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                                     static_cast<uint64_t>(nodes * 1000 + edges + bits)}));
      }
    }
  }
  lists.push_back(random_list({70000, 600000, true, true, true, 7}));
  return lists;
}

}  // namespace nacre::test

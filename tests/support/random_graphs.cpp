#include "support/random_graphs.h"

#include <algorithm>
#include <utility>

#include "support/rng.h"

namespace nacre::test {
namespace {

constexpr int kTypes = 4;  // the last type has no edges

EdgeList random_edges(Rng& rng, int64_t nodes, int64_t edges) {
  EdgeList list;
  list.num_nodes = nodes;
  for (int64_t i = 0; i < edges; ++i) {
    list.src.push_back(static_cast<NodeId>(rng.below(nodes)));
    list.dst.push_back(static_cast<NodeId>(rng.below(nodes)));
  }
  return list;
}

EdgeList with_weights(Rng& rng, EdgeList list) {
  for (size_t i = 0; i < list.src.size(); ++i) list.weight.push_back(static_cast<float>(rng.uniform(0.25, 2)));
  return list;
}

EdgeList with_types(Rng& rng, EdgeList list) {
  for (size_t i = 0; i < list.src.size(); ++i) list.type.push_back(static_cast<uint16_t>(rng.below(kTypes - 1)));
  list.num_types = kTypes;
  return list;
}

// Returns random edges of which none touches the last vertex or a vertex whose id is 1 mod 3.
// Vertex 0 has the edges that would have touched them.
EdgeList isolated(Rng& rng, int64_t nodes) {
  EdgeList list = random_edges(rng, nodes, 3 * nodes);
  const auto off = [&](NodeId& v) {
    if (v % 3 == 1 || v + 1 == nodes) v = 0;
  };
  std::for_each(list.src.begin(), list.src.end(), off);
  std::for_each(list.dst.begin(), list.dst.end(), off);
  return list;
}

EdgeList self_loops(Rng& rng, int64_t nodes) {
  EdgeList list = random_edges(rng, nodes, 2 * nodes);
  for (int64_t v = 0; v < nodes; ++v) {
    list.src.push_back(static_cast<NodeId>(v));
    list.dst.push_back(static_cast<NodeId>(v));
  }
  return list;
}

// Returns random edges, each of them two or three times.
EdgeList duplicates(Rng& rng, int64_t nodes) {
  EdgeList list = random_edges(rng, nodes, nodes);
  const size_t n = list.src.size();
  for (size_t i = 0; i < n + n / 2; ++i) {
    list.src.push_back(list.src[i]);
    list.dst.push_back(list.dst[i]);
  }
  return list;
}

// Returns edges from all vertices to vertex 0, and from vertex 1 to all vertices.
EdgeList hubs(int64_t nodes) {
  EdgeList list;
  list.num_nodes = nodes;
  for (int64_t v = 0; v < nodes; ++v) {
    list.src.insert(list.src.end(), {static_cast<NodeId>(v), static_cast<NodeId>(std::min<int64_t>(1, nodes - 1))});
    list.dst.insert(list.dst.end(), {0, static_cast<NodeId>(v)});
  }
  return list;
}

// Returns a random block with edges from num_src vertices to the first num_dst of them. Destination
// 0 has no edge if there are others.
Graph random_block(Rng& rng, int64_t num_src, int64_t num_dst, bool weighted, bool typed) {
  EdgeList list;
  for (int64_t v = num_dst > 1 ? 1 : 0; v < num_dst; ++v) {
    for (int64_t degree = 1 + rng.below(5); degree > 0; --degree) {
      list.src.push_back(static_cast<NodeId>(rng.below(num_src)));
      list.dst.push_back(static_cast<NodeId>(v));
    }
  }
  list.num_nodes = num_src;
  if (weighted) list = with_weights(rng, list);
  if (typed) list = with_types(rng, list);
  GraphArrays arrays = build_graph(list, "random block").arrays();
  arrays.num_dst = num_dst;
  arrays.row_ptr = std::vector<int64_t>(arrays.row_ptr.begin(), arrays.row_ptr.begin() + num_dst + 1);
  return Graph(arrays, "random block");
}

}  // namespace

std::vector<GraphCase> random_graphs(uint64_t seed, int64_t nodes) {
  Rng rng(mix_key(seed, 1));
  std::vector<GraphCase> cases;
  const auto keep = [&](const char* name, EdgeList list) {
    cases.push_back({name, build_graph(std::move(list), name)});
  };
  keep("plain", random_edges(rng, nodes, 3 * nodes));
  keep("weighted", with_weights(rng, random_edges(rng, nodes, 3 * nodes)));
  keep("typed", with_types(rng, random_edges(rng, nodes, 3 * nodes)));
  keep("typed_weighted", with_types(rng, with_weights(rng, random_edges(rng, nodes, 4 * nodes))));
  keep("isolated", with_types(rng, isolated(rng, nodes)));
  keep("self_loops", with_weights(rng, self_loops(rng, nodes)));
  keep("duplicates", with_types(rng, with_weights(rng, duplicates(rng, nodes))));
  keep("hubs", hubs(nodes));
  keep("sparse", random_edges(rng, nodes, nodes / 2));
  keep("no_edges", random_edges(rng, nodes, 0));
  keep("one_vertex", random_edges(rng, 1, 0));
  keep("one_vertex_loops", with_types(rng, with_weights(rng, random_edges(rng, 1, 2))));
  return cases;
}

std::vector<BlocksCase> random_blocks(uint64_t seed, int num_layers, int64_t last_dst) {
  Rng rng(mix_key(seed, 2));
  std::vector<BlocksCase> cases;
  const auto keep = [&](const char* name, bool weighted, bool typed) {
    BlocksCase made{name, {}};
    int64_t num_dst = last_dst;
    for (int l = 0; l < num_layers; ++l) {
      const int64_t num_src = num_dst + 1 + rng.below(2 * num_dst);
      made.layers.insert(made.layers.begin(), random_block(rng, num_src, num_dst, weighted, typed));
      num_dst = num_src;
    }
    cases.push_back(std::move(made));
  };
  keep("blocks_plain", false, false);
  keep("blocks_weighted", true, false);
  keep("blocks_typed", false, true);
  keep("blocks_typed_weighted", true, true);
  return cases;
}

Graph few_ends(End few) {
  EdgeList list;
  list.num_nodes = 40;
  list.num_types = 2;
  for (NodeId v = 0; v < 40; ++v) {
    for (NodeId hub = 0; hub < 2; ++hub) {
      for (uint16_t type = 0; type < 2; ++type) {
        list.src.push_back(few == End::src ? hub : v);
        list.dst.push_back(few == End::src ? v : hub);
        list.type.push_back(type);
      }
    }
  }
  return build_graph(std::move(list), "few ends");
}

}  // namespace nacre::test

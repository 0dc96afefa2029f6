// Builds a small graph with Nacre's library and prints its sizes.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <utility>

#include "nacre/graph/graph.h"
#include "nacre/graph/stats.h"

namespace {

// A ring of `size` vertices in which every third vertex also points at vertex 0.
nacre::Graph ring_with_hub(uint32_t size) {
  nacre::EdgeList edges;
  edges.num_nodes = size;
  for (uint32_t v = 0; v < size; ++v) {
    edges.src.push_back(v);
    edges.dst.push_back((v + 1) % size);
    if (v % 3 == 1) {
      edges.src.push_back(v);
      edges.dst.push_back(0);
    }
  }
  return nacre::build_graph(std::move(edges), "ring_with_hub");
}

}  // namespace

int main() {
  try {
    const nacre::Graph graph = ring_with_hub(12);
    const nacre::GraphStats stats = nacre::compute_stats(graph);
    std::printf("%lld vertices, %lld edges, in-degree %lld to %lld, %lld component(s)\n",
                static_cast<long long>(graph.num_nodes()), static_cast<long long>(graph.num_edges()),
                static_cast<long long>(stats.in.min), static_cast<long long>(stats.in.max),
                static_cast<long long>(stats.components));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

// Makes small random graphs for tests, with every structure that is hard to handle. Each graph has
// a name, which says on which graph a test fails. The same seed gives the same graphs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/graph/graph.h"

namespace nacre::test {

struct GraphCase {
  std::string name;
  Graph graph;
};

// Returns full graphs of about `nodes` vertices: plain, weighted, typed (one type has no edges),
// and graphs with isolated vertices, self loops, duplicate edges, hubs, a single vertex, or no
// edges. Edge weights are positive.
std::vector<GraphCase> random_graphs(uint64_t seed, int64_t nodes = 12);

// Returns a graph of 40 vertices with edges of two types. Two of the vertices have an edge of each
// type to every vertex or from every vertex: `few` says whether these two are the sources or the
// destinations.
Graph few_ends(End few);

struct BlocksCase {
  std::string name;
  // These are the blocks in order. The destinations of layer l are the sources of layer l + 1, and
  // are the first sources of layer l.
  std::vector<Graph> layers;
};

// Returns chains of blocks with fewer destinations than sources, which end in `last_dst` vertices.
std::vector<BlocksCase> random_blocks(uint64_t seed, int num_layers, int64_t last_dst = 4);

}  // namespace nacre::test

// Graphs that tests run on: a family of small random ones with every awkward structure, named so that a failure says
// which. The same seed gives the same graphs.
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

// Full graphs of about `nodes` vertices: plain, weighted, typed (one type without edges), isolated vertices, self
// loops, duplicate edges, hubs, a single vertex, no edges. Edge weights are positive.
std::vector<GraphCase> random_graphs(uint64_t seed, int64_t nodes = 12);

struct BlocksCase {
  std::string name;
  std::vector<Graph> layers;  // layer l's destinations are layer l+1's sources and the first of layer l's sources
};

// Chains of message-flow blocks with fewer destinations than sources, ending in `last_dst` vertices.
std::vector<BlocksCase> random_blocks(uint64_t seed, int num_layers, int64_t last_dst = 4);

}  // namespace nacre::test

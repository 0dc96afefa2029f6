// Makes random graphs that are large enough for several chunks and tiles, with rows that are long
// enough to be cut into pieces.
#pragma once

#include <algorithm>

#include "nacre/graph/graph.h"
#include "support/rng.h"

namespace nacre::test {

struct BigGraph {
  int64_t vertices = 3000;
  int64_t edges = 20000;      // edges between random vertices
  int64_t hub_edges = 20000;  // edges into vertex 7; half as many leave vertex 11
  int types = 5;              // number of edge types; the last has no edges
  uint64_t seed = 1;
};

inline Graph typed_weighted_graph(const BigGraph& how) {
  Rng rng(how.seed);
  EdgeList list;
  list.num_nodes = how.vertices;
  list.num_types = how.types;
  const auto any = [&] { return static_cast<NodeId>(rng.below(how.vertices)); };
  const auto put = [&](NodeId src, NodeId dst) {
    list.src.push_back(src);
    list.dst.push_back(dst);
    list.weight.push_back(static_cast<float>(rng.uniform(0.25, 2)));
    list.type.push_back(static_cast<uint16_t>(rng.below(std::max(1, how.types - 1))));
  };
  for (int64_t i = 0; i < how.edges; ++i) put(any(), any());
  for (int64_t i = 0; i < how.hub_edges; ++i) put(any(), 7);
  for (int64_t i = 0; i < how.hub_edges / 2; ++i) put(11, any());
  return build_graph(std::move(list), "big graph");
}

}  // namespace nacre::test

// Parts of a graph, as the ranks of a distributed run have them: some vertices with the edges that
// lead to them. The parts made here are samples, for timing; they are not a partition.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/graph/graph.h"

namespace nacre {

enum class PartShape : uint8_t {
  scattered,  // vertices drawn at random: most neighbours are outside
  range,      // consecutive vertices
  ball,       // vertices found by breadth-first search: most neighbours are inside
};

// Returns `count` distinct vertices of a graph with as many sources as destinations, in ascending
// order. The same seed gives the same vertices. `count` must not exceed the number of vertices.
std::vector<NodeId> draw_vertices(const Graph& graph, PartShape shape, int64_t count, uint64_t seed);

// A part as one graph with as many sources as destinations. Its own vertices come first, then its
// halo: sources of other parts, which have no edges to them here.
struct GraphPart {
  Graph graph;
  int64_t own = 0;
  // The numbers of the vertices in the whole graph: first those of the own vertices, then those of
  // the halo, each ascending.
  std::vector<NodeId> vertices;
};
// Returns the part of the vertices `own`, which must be ascending. If `halo` is false, edges from
// vertices outside the part are left out. Edges keep weights and types.
GraphPart part_of(const Graph& graph, std::span<const NodeId> own, bool halo);

}  // namespace nacre

// Divides the edges of a graph between the (vertex, type) pairs of their two ends, so that the
// edges touch few pairs. Typed work on an edge can be done once for the pair of its source or once
// for the pair of its destination; a pair that many edges share saves work. The smallest set that
// contains the source pair or the destination pair of every edge is a minimum vertex cover of the
// bipartite graph of pairs.
#pragma once

#include "nacre/graph/graph.h"

namespace nacre {

// Both halves have the vertices of the whole graph, and the types but not the weights of its edges.
struct EdgeCover {
  Graph at_dst;  // the edges that belong to the pair of their destination
  Graph at_src;  // the edges that belong to the pair of their source
  // The in-CSR positions in the whole graph of the edges of each half, in the order of that half.
  Array<EdgeId> dst_edges;
  Array<EdgeId> src_edges;

  // Returns the number of pairs that the edges touch: destination pairs of one half and source
  // pairs of the other.
  int64_t num_pairs() const { return at_dst.count_pairs(End::dst) + at_src.count_pairs(End::src); }
  // Returns the bytes of both halves, without what their graphs build on first use, such as out().
  int64_t bytes() const;
};

// Returns a cover with the fewest pairs if the search for it ends within kMostCoverPhases phases;
// otherwise a cover with a few pairs more. The result depends on the graph alone. The search takes
// about a second for a million edges on one core; types are searched in parallel.
EdgeCover cover_edges(const Graph& graph);
inline constexpr int kMostCoverPhases = 24;

// Returns the bytes that cover_edges() needs while it runs, for a graph of this many edges.
int64_t covering_bytes(int64_t edges);

}  // namespace nacre

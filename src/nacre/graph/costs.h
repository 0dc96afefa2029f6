// Computes in advance how many bytes it takes to make one graph from another.
#pragma once

#include <cstdint>

namespace nacre {

struct GraphCounts {
  int64_t nodes = 0;
  int64_t edges = 0;
  bool weighted = false;
  bool typed = false;

  int64_t bytes() const { return (nodes + 1) * 8 + edges * (4 + (weighted ? 4 : 0) + (typed ? 2 : 0)); }
};

// Returns the most bytes that build_graph() holds at any moment, including the list of edges that
// it is given.
int64_t build_graph_bytes(const GraphCounts& graph);
// Both functions return bytes besides those of the graph itself: out_bytes() those that the result
// of Graph::out() takes, making_out_bytes() the most that are held while Graph::out() makes it.
int64_t out_bytes(const GraphCounts& graph);
int64_t making_out_bytes(const GraphCounts& graph);
// Returns the most bytes that make_undirected() takes besides the graph that it is given, including
// its result.
int64_t make_undirected_bytes(const GraphCounts& graph);

}  // namespace nacre

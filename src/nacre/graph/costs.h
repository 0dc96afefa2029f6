// What it takes to make one graph from another, in bytes, before it is done.
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

// The most that build_graph() holds at any moment, the list it is given included.
int64_t build_graph_bytes(const GraphCounts& graph);
// What Graph::out() holds in the end, and the most while it is made, beside the graph itself.
int64_t out_bytes(const GraphCounts& graph);
int64_t making_out_bytes(const GraphCounts& graph);
// The most that make_undirected() takes beside the graph it is given, its result included.
int64_t make_undirected_bytes(const GraphCounts& graph);

}  // namespace nacre

// Turns around all edges of a graph.
#pragma once

#include "nacre/graph/graph.h"

namespace nacre {

// Returns the graph whose edge i is edge graph.out().edge_id[i] of `graph`, from its destination to
// its source, with its weight and type. The result shares the arrays of graph.out(), so it costs
// memory for weights and types only.
Graph reversed_graph(const Graph& graph);

}  // namespace nacre

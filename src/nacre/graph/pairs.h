// Builds a PairIndex. Callers use Graph::pairs(), which keeps the result.
#pragma once

#include "nacre/graph/graph.h"

namespace nacre {

PairIndex make_pairs(const Graph& graph, End end);
int64_t count_pairs(const Graph& graph, End end);

}  // namespace nacre

// Building a PairIndex. Graph::pairs() is the door; this is its workshop.
#pragma once

#include "nacre/graph/graph.h"

namespace nacre {

PairIndex make_pairs(const Graph& graph, End end);
int64_t count_pairs(const Graph& graph, End end);

}  // namespace nacre

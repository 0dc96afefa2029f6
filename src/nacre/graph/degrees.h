// Counts degrees and summarises them, for statistics and features of graphs.
#pragma once

#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/graph/stats.h"

namespace nacre {

// Returns the number of edges that leave each source. Takes one parallel pass over the edges.
std::vector<int64_t> out_degrees(const Graph& graph);

// Returns the figures of the degrees degree(0) … degree(vertices - 1), whose sum is `edges`.
DegreeStats degree_stats(int64_t vertices, int64_t edges, FunctionRef<int64_t(int64_t)> degree);

}  // namespace nacre

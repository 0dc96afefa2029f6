// What a graph looks like: the figures `nacre data info` prints and planners read.
#pragma once

#include <cstdint>
#include <span>

#include "nacre/graph/graph.h"

namespace nacre {

struct DegreeStats {
  int64_t min = 0;
  int64_t max = 0;
  double mean = 0;
  int64_t median = 0;
  int64_t p90 = 0;
  int64_t p99 = 0;
  double gini = 0;    // 0: all equal; towards 1: few vertices have all the edges
  int64_t zeros = 0;  // vertices of degree 0
};

struct GraphStats {
  DegreeStats in;
  DegreeStats out;
  int64_t self_loops = 0;
  int64_t duplicate_edges = 0;  // beyond the first of each (src, dst)
  bool symmetric = false;       // every edge has its reverse
  int64_t components = 0;       // weakly connected
  int64_t largest_component = 0;
  int64_t isolated = 0;  // vertices without any edge
};

GraphStats compute_stats(const Graph& graph);

// Share of edges between vertices of the same label; edges with an unlabelled end (label < 0) are left out. NaN if
// none.
double edge_homophily(const Graph& graph, std::span<const int32_t> labels);

}  // namespace nacre

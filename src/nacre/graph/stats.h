// Figures that describe a graph: `nacre data info` prints them and planners read them.
#pragma once

#include <cstdint>
#include <span>

#include "nacre/graph/graph.h"

namespace nacre {

struct DegreeStats {
  int64_t min = 0;
  int64_t max = 0;
  double mean = 0;
  double deviation = 0;  // standard deviation
  double skew = 0;       // third central moment over deviation³; 0 if all degrees are equal
  int64_t p10 = 0;
  int64_t median = 0;
  int64_t p90 = 0;
  int64_t p99 = 0;
  // Gini coefficient of the degrees: 0 if all are equal, near 1 if few vertices have all the edges.
  double gini = 0;
  int64_t zeros = 0;  // vertices of degree 0
};

struct GraphStats {
  DegreeStats in;
  DegreeStats out;
  int64_t self_loops = 0;
  int64_t duplicate_edges = 0;  // edges beyond the first of each (src, dst)
  bool symmetric = false;       // whether every edge has its reverse
  int64_t components = 0;       // number of weakly connected components
  int64_t largest_component = 0;
  int64_t isolated = 0;  // vertices without any edge
};

GraphStats compute_stats(const Graph& graph);

// Returns the share of edges between vertices of the same label. Edges with an unlabelled end
// (label < 0) do not count; returns NaN if no edge counts.
double edge_homophily(const Graph& graph, std::span<const int32_t> labels);

}  // namespace nacre

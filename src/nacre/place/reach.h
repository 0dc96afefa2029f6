// Computes the probability that a batch reads the row of each vertex. Only files of this room
// include this header.
#pragma once

#include <span>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/sample/sample.h"

namespace nacre {

// Returns for every vertex the probability that it is among the vertices of a batch, for samplers
// that go hop by hop. `seed` has for every vertex the probability that it is a seed.
std::vector<float> reach_probabilities(const Graph& graph, const SampleOptions& options, int hops,
                                       std::span<const float> seed);

// Returns for every vertex the probability that it is among the vertices of a batch, for samplers
// that draw subgraphs.
std::vector<float> subgraph_probabilities(const Graph& graph, const SampleOptions& options);

}  // namespace nacre

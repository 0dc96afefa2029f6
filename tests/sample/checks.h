// Checks that every sample must pass, whatever drew it.
#pragma once

#include <vector>

#include "nacre/sample/sample.h"

namespace nacre::test {

// Checks local ids, prefixes, positions, weights, types and orders. The running test fails if
// something is wrong.
void check_sample(const Graph& graph, const Sample& sample, std::span<const NodeId> seeds);
// Checks that both samples have the same bytes everywhere.
void expect_equal(const Sample& a, const Sample& b);

// For every edge of the graph: the mean over `batches` samples of its scale in the block next to
// the seeds (0 if the edge was not picked), and the standard error of that mean. The same for the
// sum over all edges.
struct EdgeMeans {
  std::vector<double> mean;
  std::vector<double> error;
  double total = 0;
  double total_error = 0;
};
EdgeMeans scale_means(const Sampler& sampler, std::span<const NodeId> seeds, int batches);

// Returns a graph in which vertex 0 has the in-edges 1 … degree, and there are no other edges.
Graph star(int64_t degree, std::vector<float> weights = {});

std::vector<NodeId> all_vertices(const Graph& graph);

}  // namespace nacre::test

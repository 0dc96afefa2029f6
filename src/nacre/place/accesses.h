// This header predicts how often training by mini-batches reads the feature row of each vertex. The
// methods of feature placement decide by these numbers (contract row DP2; docs/dev/placement.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/sample/sample.h"

namespace nacre {

// Describes the batches of a training epoch. The graph and the training vertices must live as long
// as the request.
struct AccessRequest {
  const Graph* graph = nullptr;
  SampleOptions sampling;         // sampling options, as Sampler takes them
  std::span<const NodeId> train;  // training vertices, distinct; every epoch shuffles all of them
  int64_t batch_size = 1024;      // number of seeds of a batch
};

// Returns the number of batches of an epoch: ⌈training vertices / batch size⌉, or ⌈vertices / batch
// size⌉ if the sampler draws its own seeds (SamplerInfo::draws_subgraph).
int64_t batches_of_epoch(const AccessRequest& request);

// Return for every vertex the number of batches of an epoch that read its row: a batch reads the
// row of each of its vertices once. Divide by batches_of_epoch() for the probability that a batch
// reads the row. Both functions throw UserError if the options do not suit the graph, and both give
// the same bits on any number of threads.
//
// access_probabilities() computes expectations, in time proportional to layers × edges.
// presampled_accesses() draws `batches` batches of epochs that training never has, counts, and
// scales the counts to an epoch.
std::vector<float> access_probabilities(const AccessRequest& request);
std::vector<float> presampled_accesses(const AccessRequest& request, int64_t batches);

}  // namespace nacre

// What the leaves of a model's DFG hold when it runs on blocks instead of the whole graph.
#pragma once

#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/engine/block_runner.h"
#include "nacre/sample/sample.h"
#include "nacre/train/run_data.h"

namespace nacre {

// Rows of `table` (any dtype) by id; parallel.
Tensor gather_rows(const Tensor& table, std::span<const NodeId> ids);
void gather_rows(const Tensor& table, std::span<const NodeId> ids, void* out);
// Fills a table of floats with zeros, but for the rows `ids`, of which row i becomes row i of `rows`. No id stands
// there twice.
void spread_rows(const float* rows, std::span<const NodeId> ids, const Tensor& table);

class BatchInputs {
 public:
  // Computes what all blocks take rows of: degrees of the whole graph.
  explicit BatchInputs(const RunData& run);

  // Values of the leaves of `dfg` on the sample's blocks, all but features, parameters and what stages carry (split.h).
  std::vector<LeafValue> gather(const Dfg& dfg, const Sample& sample) const;
  int64_t bytes() const;

 private:
  Tensor value(const Node& leaf, const Sample& sample) const;
  Tensor loss_weights(const Sample& sample) const;

  const RunData& run_;
  Tensor in_degree_, out_degree_;  // of every vertex, f32
  Tensor in_weight_, out_weight_;  // sums of edge weights, where the graph has them
  std::vector<uint8_t> counts_;    // per vertex: of the training split, and labelled
};

}  // namespace nacre

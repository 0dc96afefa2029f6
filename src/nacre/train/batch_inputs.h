// BatchInputs: the values of the leaves of a model's DFG when the model runs on blocks instead of
// the whole graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/engine/block_runner.h"
#include "nacre/sample/sample.h"
#include "nacre/train/kind_tables.h"
#include "nacre/train/run_data.h"

namespace nacre {

// Return (or write to `out`) the rows `ids` of `table`, which may have any dtype. Rows of bf16 and
// f16 are widened to f32. All threads take part.
Tensor gather_rows(const Tensor& table, std::span<const NodeId> ids);
void gather_rows(const Tensor& table, std::span<const NodeId> ids, void* out);
// Writes row i of `rows` to row ids[i] of `table`, a table of floats, and zeros to all its other
// rows. The ids must be distinct.
void spread_rows(const float* rows, std::span<const NodeId> ids, const Tensor& table);

// Returns, for each vertex, the sum of the weights of the edges that have the vertex at this end,
// added in the order of the edges. If `weight` is empty, every edge weighs 1.
Tensor sum_at(const Graph& graph, End end, const Array<float>& weight);

// Says what the loss of a batch is divided by. The loss of a batch that is a step of its own is the
// mean over its labelled training vertices. If several batches make up a step, their losses add up
// to the loss of the step.
struct LossTotal {
  // The sum of the weights of the seeds of all batches of the step. If it is not set, the loss is
  // the mean over the batch, divided by `batches`.
  std::optional<double> weight = std::nullopt;
  int64_t batches = 1;  // batches of the step
};

class BatchInputs {
 public:
  // Computes the degrees of all vertices in the whole graph. The leaves of a batch hold rows of
  // them.
  explicit BatchInputs(const RunData& run);

  // Returns the values of the leaves of `dfg` on the blocks of the sample: all leaves but features,
  // parameters, and the values that one stage hands to the next (split.h).
  std::vector<LeafValue> gather(const Dfg& dfg, const Sample& sample, const LossTotal& total = {}) const;
  // Returns the sum of the weights in the loss of those of `vertices` that are labelled training
  // vertices.
  double weight_of(std::span<const NodeId> vertices) const;
  int64_t bytes() const;

  // Returns the tables of rows, one for each kind of vertices; null if all vertices read one table.
  KindTables* kinds() const { return kinds_.get(); }
  // Returns the blocks of a sample, with its vertices by their kinds if there are several.
  Blocks blocks(const Sample& sample) const;
  // Return the bytes of the rows that a sample reads, and of the rows of all vertices, as f32.
  int64_t row_bytes(const Sample& sample) const;
  int64_t all_row_bytes() const;

 private:
  Tensor value(const Node& leaf, const Sample& sample, const LossTotal& total) const;
  Tensor loss_weights(const Sample& sample, const LossTotal& total) const;

  const RunData& run_;
  std::unique_ptr<KindTables> kinds_;
  Tensor in_degree_, out_degree_;  // degrees of every vertex, f32
  Tensor in_weight_, out_weight_;  // sums of the edge weights of every vertex, if the graph has any
  // For every vertex, 1 if it is labelled and in the training split.
  std::vector<uint8_t> counts_;
};

}  // namespace nacre

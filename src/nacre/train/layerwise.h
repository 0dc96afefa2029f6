// LayerwiseInference: exact inference one layer at a time. The values of a layer are computed for
// all vertices, block by block and from all their neighbours, before the next layer begins. So the
// memory of the host holds the values of about two layers, and that of the back end the work of one
// block.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/dfg/split.h"
#include "nacre/engine/block_runner.h"
#include "nacre/tier/batch_sequence.h"
#include "nacre/train/batch_inputs.h"

namespace nacre {

struct LayerwiseOptions {
  // The rows and messages of a block take about this many bytes.
  int64_t block_bytes = int64_t{256} << 20;
  uint64_t seed = 0;
};

class LayerwiseInference {
 public:
  // `dfg` is the forward pass for blocks (Sampling::blocks).
  LayerwiseInference(const RunData& run, const BatchInputs& inputs, const Dfg& dfg, std::shared_ptr<Backend> backend,
                     const LayerwiseOptions& options);

  // Returns the memory of a parameter, in the back end's memory.
  using ParameterMemory = std::function<void*(const std::string& parameter)>;
  // Computes all outputs on the host from the features of all vertices; values() are valid until
  // the next run. If vertices are of several kinds, their features are read from the BatchInputs,
  // and `features` is not used. If `source` is given, it looks up the rows of feature_blocks(), and
  // `features` only tells their size.
  void run(const Tensor& features, const ParameterMemory& parameter, RowSource* source = nullptr);
  // Returns the vertices of the blocks that read features, in the order in which a run computes the
  // blocks.
  std::unique_ptr<BatchSequence> feature_blocks() const;
  // Returns an output as [num_nodes, width].
  const float* values(const std::string& output) const;
  int64_t width(const std::string& output) const;
  // Returns the bytes of the stored values of all vertices at the peak of a run.
  int64_t bytes() const;
  // Plans the layers on their first blocks, and returns the bytes that the work on a block takes:
  // rows that are looked up, the arrays of the block, and the arena. The number is that of the
  // largest of three blocks of each layer, and a quarter more.
  int64_t work_bytes();

 private:
  struct Layer {
    LayerStage stage;
    std::unique_ptr<BlockRunner> runner;  // planned on the first block
    std::vector<std::string> dead;        // values that no later stage reads
  };
  Sample block_of(const Layer& layer, int64_t begin, int64_t end) const;
  void plan_layer(Layer& layer, const Sample& sample);
  int64_t work_bytes(Layer& layer, int64_t begin);
  void run_layer(Layer& layer, const ParameterMemory& parameter);
  void run_block(Layer& layer, int64_t begin, int64_t end, const ParameterMemory& parameter);
  int64_t end_of_block(const Layer& layer, int64_t begin) const;
  Tensor feature_rows(std::span<const NodeId> ids);
  // Adds the feature rows of the vertices of a block to `leaves`.
  void add_features(std::span<const NodeId> vertices, std::vector<LeafValue>& leaves);
  // Returns the leaf of the features of one kind: an input, or the parameter of learned rows.
  std::string features_leaf() const;
  bool reads_features(const Dfg& dfg) const;

  const RunData& run_;
  const BatchInputs& inputs_;
  std::shared_ptr<Backend> backend_;
  LayerwiseOptions options_;
  std::vector<Layer> layers_;
  Tensor features_;                       // set during a run
  RowSource* source_ = nullptr;           // the source of rows during a run; null if features_ has
                                          // the rows
  int64_t blocks_read_ = 0;               // number of blocks whose features the run has looked up
  std::map<std::string, Tensor> tables_;  // values carried between stages, one row for each vertex
};

}  // namespace nacre

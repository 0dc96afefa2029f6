// Exact inference one layer at a time: every layer's values of all vertices are computed block by block, from all
// their neighbours, before the next layer begins. Memory: two layers' values on the host, and one block's work.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/dfg/split.h"
#include "nacre/engine/block_runner.h"
#include "nacre/train/batch_inputs.h"

namespace nacre {

struct LayerwiseOptions {
  int64_t block_bytes = int64_t{256} << 20;  // of a block's rows and messages, about
  uint64_t seed = 0;
};

class LayerwiseInference {
 public:
  // `dfg`: of the forward pass, for blocks (Sampling::blocks).
  LayerwiseInference(const RunData& run, const BatchInputs& inputs, const Dfg& dfg, std::shared_ptr<Backend> backend,
                     const LayerwiseOptions& options);

  // Returns the memory of a parameter, in the back end's memory.
  using ParameterMemory = std::function<void*(const std::string& parameter)>;
  // Computes all outputs from the features of all vertices, on the host; values() are valid until the next run.
  void run(const Tensor& features, const ParameterMemory& parameter);
  // [num_nodes, width]
  const float* values(const std::string& output) const;
  int64_t width(const std::string& output) const;
  // Host memory at the peak of a run, without a block's own work.
  int64_t bytes() const;
  // A block's own work: rows that are looked up, the block's arrays, and the arena. Plans the layers on their first
  // blocks, and reckons with the largest of three blocks and a little more.
  int64_t work_bytes();

 private:
  struct Layer {
    LayerStage stage;
    std::unique_ptr<BlockRunner> runner;  // planned on its first block
    std::vector<std::string> dead;        // values no later stage reads
  };
  Sample block_of(const Layer& layer, int64_t begin, int64_t end) const;
  void plan_layer(Layer& layer, const Sample& sample);
  int64_t work_bytes(Layer& layer, int64_t begin);
  void run_layer(Layer& layer, const ParameterMemory& parameter);
  void run_block(Layer& layer, int64_t begin, int64_t end, const ParameterMemory& parameter);
  int64_t end_of_block(const Layer& layer, int64_t begin) const;
  // The leaf of the features: an input, or the parameter of rows that are learned.
  std::string features_leaf() const;
  bool reads_features(const Dfg& dfg) const;

  const RunData& run_;
  const BatchInputs& inputs_;
  std::shared_ptr<Backend> backend_;
  LayerwiseOptions options_;
  std::vector<Layer> layers_;
  Tensor features_;                       // during a run
  std::map<std::string, Tensor> tables_;  // values carried between stages, one row per vertex
};

}  // namespace nacre

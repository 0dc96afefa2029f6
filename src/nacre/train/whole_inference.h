// WholeInference: exact inference on the whole graph at once. It is much faster than layer by
// layer, but needs more memory.
#pragma once

#include <memory>
#include <string>

#include "nacre/engine/executor.h"
#include "nacre/train/device.h"
#include "nacre/train/learner.h"
#include "nacre/train/run_data.h"

namespace nacre {

class WholeInference {
 public:
  // Brings the forms of the graph into the back end's memory.
  WholeInference(const RunData& run, Learner& learner, const RunDevice& device, bool embeddings);

  // Returns the bytes in the back end's memory, including the forms of the graph.
  int64_t bytes() const;
  // Takes the memory and computes what depends on no weight.
  void start();
  // Runs with the current weights; values() are valid until the next run.
  void run();
  const float* values(const std::string& output) { return executor_->output(output); }
  Executor& executor() { return *executor_; }

 private:
  const RunData& run_;
  Learner& learner_;
  const RunDevice& device_;
  int64_t forms_ = 0;
  std::unique_ptr<Executor> executor_;
  ConstantPool constants_;
};

}  // namespace nacre

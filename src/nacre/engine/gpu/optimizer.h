// Optimiser steps on a GPU: one launch over all parameters. What changes from step to step lies in device memory,
// written by begin(), so the launch can be part of a recorded graph.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/gpu/context.h"

namespace nacre {

struct GpuOptimizerOptions {
  std::string name = "adam";  // adam, adamw, sgd
  double weight_decay = 0;    // adam, sgd: added to the gradient; adamw: decoupled
  double momentum = 0;        // sgd
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double clip_norm = 0;  // of all gradients together; 0: they are not clipped
  double ema = 0;        // a moving average of the weights is kept; 0: none
};

// A trained parameter: its place in the flat block and its gradient in device memory (null: it is left alone).
struct GpuParameter {
  int64_t offset = 0;
  int64_t size = 0;
  const float* gradient = nullptr;
};

class GpuOptimizer {
 public:
  // `values`: the flat block in device memory, trained parameters in its first `trained_size` elements.
  GpuOptimizer(GpuContext& context, const GpuOptimizerOptions& options, const std::vector<GpuParameter>& parameters,
               float* values, int64_t trained_size);

  // Counts a step and writes its numbers to the device; outside of recordings. `average_kept`: the share of its old
  // value that the average keeps.
  void begin(double lr, double average_kept = 0);
  // Applies the gradients: may be recorded, with begin() called before each replay.
  const Step& step() const { return step_; }

  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  // Moments in device memory (adam, adamw: both; sgd with momentum: the first), laid out like the parameters; null
  // where not used. They start as zeros.
  float* first() const { return static_cast<float*>(first_.get()); }
  float* second() const { return static_cast<float*>(second_.get()); }
  // The moving average of the weights, likewise; null where none is kept. It starts as zeros.
  float* average() const { return static_cast<float*>(average_.get()); }
  // Exchanges the weights and their average.
  void exchange_average();
  int64_t bytes() const { return bytes_; }

 private:
  GpuContext& context_;
  GpuOptimizerOptions options_;
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
  float* values_;
  int64_t average_bytes_ = 0;
  std::shared_ptr<void> first_, second_, average_, spare_, numbers_, pieces_, squares_, factor_;
  Step step_;
};

}  // namespace nacre

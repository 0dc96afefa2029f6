// The optimiser on a GPU: one launch over all parameters. The numbers that change from step to step
// lie in device memory and are written by begin(), so that the launch can be part of a recording.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/gpu/context.h"

namespace nacre {

struct GpuOptimizerOptions {
  std::string name = "adam";  // adam, adamw, sgd
  double weight_decay = 0;    // added to the gradient (adam, sgd) or decoupled from it (adamw)
  double momentum = 0;        // of sgd
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double clip_norm = 0;  // largest norm of all gradients together; 0 if they are not clipped
  double ema = 0;        // if > 0, a moving average of the weights is kept
};

// A trained parameter: its place in the block of all parameters, and its gradient in device memory.
// A parameter whose gradient is null does not change.
struct GpuParameter {
  int64_t offset = 0;
  int64_t size = 0;
  const float* gradient = nullptr;
};

class GpuOptimizer {
 public:
  // `values` is the block of all parameters in device memory. Its first `trained_size` elements are
  // those of trained parameters.
  GpuOptimizer(GpuContext& context, const GpuOptimizerOptions& options, const std::vector<GpuParameter>& parameters,
               float* values, int64_t trained_size);

  // Counts a step and writes its numbers to the device. This cannot be part of a recording.
  // `average_kept` is the share of its old value that the average keeps.
  void begin(double lr, double average_kept = 0);
  // Returns the step that applies the gradients. It can be recorded; begin() is called before each
  // replay.
  const Step& step() const { return step_; }

  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  // The moments in device memory, in the order of the parameters. Adam and AdamW have both, SGD
  // with momentum has the first; the others are null. They are zeros at first.
  float* first() const { return static_cast<float*>(first_.get()); }
  float* second() const { return static_cast<float*>(second_.get()); }
  // The moving average of the weights in the same order, or null if none is kept. It is zeros at
  // first.
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

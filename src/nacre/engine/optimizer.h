// Optimizer: applies the gradients of a step to the weights, in the memory where both are. Every
// back end has its own implementation (Backend::make_optimizer()). Adam, AdamW and SGD are defined
// as in PyTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/kernel/optimizer_numbers.h"

namespace nacre {

struct OptimizerOptions {
  std::string name = "adam";  // adam, adamw or sgd
  double lr = 0.01;
  double weight_decay = 0;  // adam, sgd: added to the gradient; adamw: decoupled
  double momentum = 0;      // used by sgd
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // Gradients whose norm over all parameters is larger than this are scaled down to it. With 0,
  // gradients are never scaled.
  double clip_norm = 0;
  double ema = 0;  // decay of the moving average of the weights; 0 = no average is kept
};

// Returns the share of its old value that the average of the weights keeps in a step. This is
// `decay`, and less in the first steps, so that the average forgets the initial weights.
double average_kept(double decay, int64_t step);
// Returns the factor that gradients of this norm are multiplied by.
double clip_factor(double clip_norm, double norm);
// Returns the numbers that the formulas of step `step` use. Steps are counted from 1.
OptimizerNumbers optimizer_numbers(const OptimizerOptions& options, int64_t step, double lr);

// Describes a trained parameter: elements [offset, offset + size) of the weights, and its gradient.
// With a null gradient, the loss does not depend on the parameter, and the parameter is not
// changed.
struct TrainedParameter {
  int64_t offset = 0;
  int64_t size = 0;
  const float* gradient = nullptr;
};

// Points to arrays of `size` elements in the memory of the back end. They must outlive the
// optimiser.
struct OptimizerMemory {
  float* weights = nullptr;
  float* first = nullptr;    // moments of adam, adamw, and sgd with momentum
  float* second = nullptr;   // moments of adam and adamw
  float* average = nullptr;  // moving average of the weights, if one is kept
  int64_t size = 0;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Applies the gradients that are in memory at the time of the call. A device may still be working
  // on the step when the call returns.
  virtual void step(double lr) = 0;
  // Exchanges the weights and their moving average. Without an average nothing happens.
  virtual void exchange_average() = 0;

  // Returns the number of steps applied so far.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 protected:
  explicit Optimizer(OptimizerOptions options) : options_(std::move(options)) {}
  const OptimizerOptions& options() const { return options_; }
  // Counts a step and returns its numbers.
  OptimizerNumbers count_step(double lr) { return optimizer_numbers(options_, ++steps_, lr); }

 private:
  OptimizerOptions options_;
  int64_t steps_ = 0;
};

std::unique_ptr<Optimizer> make_cpu_optimizer(const OptimizerOptions& options,
                                              const std::vector<TrainedParameter>& parameters,
                                              const OptimizerMemory& memory);

}  // namespace nacre

// Adam, AdamW and SGD over the flat parameter block, one fused pass. The definitions are PyTorch's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nacre/tensor/tensor.h"
#include "nacre/train/parameters.h"

namespace nacre {

struct OptimizerOptions {
  std::string name = "adam";  // adam, adamw, sgd
  double lr = 0.01;
  double weight_decay = 0;  // adam, sgd: added to the gradient; adamw: decoupled
  double momentum = 0;      // sgd
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

void check_optimizer(const OptimizerOptions& options);  // throws UserError

class Optimizer {
 public:
  // Throws UserError for an unknown name or settings out of range.
  Optimizer(const OptimizerOptions& options, const Parameters& parameters);

  // gradients[k] belongs to parameters.list()[k] (null: the loss does not depend on it; it is left alone).
  void step(Parameters& parameters, const std::vector<const float*>& gradients, double lr);

  const OptimizerOptions& options() const { return options_; }
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  // Moments (adam, adamw: m and v; sgd with momentum: m), laid out like the parameters. Undefined where not used.
  Tensor& first() { return first_; }
  Tensor& second() { return second_; }
  int64_t bytes() const { return first_.bytes() + second_.bytes(); }

 private:
  OptimizerOptions options_;
  int64_t steps_ = 0;
  Tensor first_;
  Tensor second_;
};

// Learning rate as a function of the epoch.
struct ScheduleOptions {
  std::string name = "constant";  // constant, step, cosine, linear
  int warmup = 0;                 // epochs of linear growth from 0
  int step_size = 50;             // step: epochs between drops
  double gamma = 0.5;             // step: factor at each drop
  double final_ratio = 0;         // cosine, linear: share of the rate left at the last epoch
};
void check_schedule(const ScheduleOptions& schedule);  // throws UserError
double scheduled_lr(const ScheduleOptions& schedule, double base, int epoch, int epochs);

}  // namespace nacre

// Adam, AdamW and SGD over the flat parameter block, one fused pass. The definitions are PyTorch's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  double clip_norm = 0;  // gradients whose norm, of all parameters together, is larger are shrunk to it; 0 = never
  double ema = 0;        // decay of the moving average of the weights; 0 = none is kept
};

// What the average of the weights keeps of itself in a step: `decay`, and less in the first steps, so that it forgets
// where the weights began.
double average_kept(double decay, int64_t step);
// What gradients of this norm are multiplied by.
double clip_factor(double clip_norm, double norm);

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
  // The moving average of the weights, laid out like them; undefined where none is kept.
  Tensor& average() { return average_; }
  // It starts from the weights as they are.
  void start_average(const Parameters& parameters);
  int64_t bytes() const { return first_.bytes() + second_.bytes() + average_.bytes(); }

 private:
  double gradient_norm(const Parameters& parameters, const std::vector<const float*>& gradients);

  OptimizerOptions options_;
  int64_t steps_ = 0;
  Tensor first_;
  Tensor second_;
  Tensor average_;
  std::vector<double> squares_;  // of the gradient, chunk by chunk
};

// Learning rate as a function of the epoch.
struct ScheduleOptions {
  std::string name = "constant";  // constant, step, cosine, linear, plateau
  int warmup = 0;                 // epochs of linear growth from 0
  int step_size = 50;             // step: epochs between drops
  double gamma = 0.5;             // step, plateau: factor at each drop
  double final_ratio = 0;         // cosine, linear: share of the rate left at the last epoch; plateau: least share
  int patience = 10;              // plateau: evaluations without improvement before a drop
};
void check_schedule(const ScheduleOptions& schedule);  // throws UserError
// A plateau's drops are no function of the epoch: Plateau multiplies them.
double scheduled_lr(const ScheduleOptions& schedule, double base, int epoch, int epochs);

}  // namespace nacre

// This file has the settings of a run's optimiser and their checks, what the optimiser carries from
// step to step, and the schedule of the learning rate. The steps themselves are in
// engine/optimizer.h.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/engine/optimizer.h"
#include "nacre/tensor/tensor.h"
#include "nacre/train/parameters.h"

namespace nacre {

void check_optimizer(const OptimizerOptions& options);  // throws UserError for bad settings

// OptimizerState: what an optimiser carries from step to step, in host memory, as checkpoints hold
// it.
class OptimizerState {
 public:
  // Throws a UserError for an unknown name or settings out of range. `tracks` is the number of
  // copies of the weights with bounded staleness; 0: there are none.
  OptimizerState(const OptimizerOptions& options, const Parameters& parameters, int tracks = 0);

  const OptimizerOptions& options() const { return options_; }
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  // Return the moments (adam, adamw: m and v; sgd with momentum: m), laid out like the trained
  // parameters. They are undefined if they are not used.
  Tensor& first() { return first_; }
  Tensor& second() { return second_; }
  // Returns the moving average of the weights, laid out like the trained parameters; undefined if
  // none is kept.
  Tensor& average() { return average_; }
  // Returns the weights that batches with bounded staleness read, a row for each track (Learner);
  // undefined if every batch reads the current weights.
  Tensor& tracks() { return tracks_; }
  const Tensor& tracks() const { return tracks_; }
  // Starts the average with the current weights.
  void start_average(const Parameters& parameters);
  int64_t bytes() const { return first_.bytes() + second_.bytes() + average_.bytes(); }

 private:
  OptimizerOptions options_;
  int64_t steps_ = 0;
  Tensor first_;
  Tensor second_;
  Tensor average_;
  Tensor tracks_;
};

// Gives the learning rate as a function of the epoch.
struct ScheduleOptions {
  std::string name = "constant";  // constant, step, cosine, linear or plateau
  int warmup = 0;                 // number of epochs of linear growth from 0
  int step_size = 50;             // step: epochs between drops
  double gamma = 0.5;             // step and plateau: factor of each drop
  // For cosine and linear: the share of the rate that is left at the last epoch. For plateau: the
  // smallest share.
  double final_ratio = 0;
  int patience = 10;  // plateau: evaluations without improvement before a drop
};
void check_schedule(const ScheduleOptions& schedule);  // throws UserError for bad settings
// Returns the rate without the drops of a plateau schedule, which are no function of the epoch; the
// caller multiplies by Plateau::factor.
double scheduled_lr(const ScheduleOptions& schedule, double base, int epoch, int epochs);

}  // namespace nacre

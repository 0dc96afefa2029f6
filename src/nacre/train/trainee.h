// Trainee: what the training loop trains. An epoch is a number of steps; between any two of them a run can be stopped,
// saved and continued.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "nacre/plan/plan.h"
#include "nacre/train/config.h"
#include "nacre/train/optimizer.h"
#include "nacre/train/parameters.h"

namespace nacre {

// NaN where there is none.
struct Scores {
  double train = NAN;
  double val = NAN;
  double test = NAN;
  double val_loss = NAN;
};

class Trainee {
 public:
  virtual ~Trainee() = default;
  virtual const RunConfig& config() const = 0;
  // All settings of the run, as config.json holds them.
  virtual std::string settings_json() const { return config_json(config()); }
  virtual const std::string& metric() const = 0;
  virtual const Plan& plan() const = 0;
  // Returns the plan with the variants of its kernels as they were bound, where the trainee keeps them bound.
  virtual Plan plan_as_bound() const { return plan(); }
  // Identifies data and settings that determine the result.
  virtual std::string fingerprint() const = 0;

  // As they are now, on the host. After changing them from outside (a checkpoint), call weights_changed().
  virtual Parameters& parameters() = 0;
  virtual OptimizerState& optimizer() = 0;
  virtual void weights_changed() = 0;
  // Whether evaluation and parameters() read the moving average of the weights, where one is kept; not while steps are
  // queued.
  virtual void use_average(bool /*use*/) {}

  virtual int64_t steps_per_epoch() const { return 1; }
  // Epochs will follow one another until so many are done: steps of one may be made ready beside the one before it.
  virtual void expect_epochs(int64_t /*epochs*/) {}
  // The steps from `first` to the end of the epoch come next, one by one.
  virtual void begin_epoch(int64_t /*epoch*/, int64_t /*first*/) {}
  // One forward and backward pass and the optimiser's update; `step` counts from the beginning of the run. A device
  // need not be through with it on return.
  virtual void queue_step(int64_t step, double lr) = 0;
  // Adds the losses of the steps since the last call, each before its update, in their order; waits for those steps.
  virtual void take_losses(double& sum) = 0;
  // A step to its end; its loss.
  double train_step(int64_t step, double lr) {
    double loss = 0;
    queue_step(step, lr);
    take_losses(loss);
    return loss;
  }
  // With the current weights; the loss of the validation vertices only where asked for.
  virtual Scores evaluate(bool with_loss) = 0;
};

}  // namespace nacre

// Trainee: what the training loop trains. An epoch is a number of steps; between any two steps a
// run can be stopped, saved and continued.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "nacre/plan/plan.h"
#include "nacre/train/config.h"
#include "nacre/train/optimizer.h"
#include "nacre/train/parameters.h"

namespace nacre {

// A score is NaN if it does not exist.
struct Scores {
  double train = NAN;
  double val = NAN;
  double test = NAN;
  double val_loss = NAN;
};

// A run that shuffles no epoch has this number as its first shuffled epoch.
inline constexpr int64_t kNeverShuffled = std::numeric_limits<int64_t>::max();

class Trainee {
 public:
  virtual ~Trainee() = default;
  virtual const RunConfig& config() const = 0;
  // Returns all settings of the run, as config.json holds them.
  virtual std::string settings_json() const { return config_json(config()); }
  virtual const std::string& metric() const = 0;
  virtual const Plan& plan() const = 0;
  // Returns the plan. If the trainee keeps the kernels of the plan bound, the plan has the variants
  // with which they were bound.
  virtual Plan plan_as_bound() const { return plan(); }
  // Returns a text that identifies the data and the settings that determine the result.
  virtual std::string fingerprint() const = 0;

  // Returns the current parameters on the host. After changing them from outside (from a
  // checkpoint), call weights_changed().
  virtual Parameters& parameters() = 0;
  virtual OptimizerState& optimizer() = 0;
  virtual void weights_changed() = 0;
  // Sets whether evaluation and parameters() read the moving average of the weights, if one is
  // kept. Must not be called while steps are queued.
  virtual void use_average(bool /*use*/) {}

  virtual int64_t steps_per_epoch() const { return 1; }
  // Return the number of batches of an epoch, and how many of them the step computes that begins
  // with batch `first` of the epoch. A step may compute several batches if there are several ranks.
  virtual int64_t batches_per_epoch() const { return steps_per_epoch(); }
  virtual int64_t batches_in_step(int64_t /*first*/) const { return 1; }
  // Announces how many epochs will follow one another, so that steps of the next epoch may be
  // prepared during the current one.
  virtual void expect_epochs(int64_t /*epochs*/) {}
  // Says that the epochs from this one on are shuffled, and those before it are not. With
  // kNeverShuffled, no epoch is shuffled. Must be called before begin_epoch(). It has no effect but
  // on mini-batches of nodes.
  virtual void shuffle_from(int64_t /*epoch*/) {}
  // Begins an epoch: the steps from batch `first` to its end come next, one by one.
  virtual void begin_epoch(int64_t /*epoch*/, int64_t /*first*/) {}
  // Queues one forward and backward pass and the update of the optimiser; `step` counts from the
  // beginning of the run. A device may still be working on it when the call returns.
  virtual void queue_step(int64_t step, double lr) = 0;
  // Adds the losses of the steps since the last call to `sum`, each before its update, in their
  // order. The loss of a step counts once for each of its batches. Waits for those steps.
  virtual void take_losses(double& sum) = 0;
  // Returns where the time of the steps since the last call went, as JSON for metrics.jsonl: a list
  // with an object for each rank. The text is empty if one device trains.
  virtual std::string take_rank_times() { return ""; }
  // Returns how many feature rows the steps since the last call have read from each tier, as JSON
  // for metrics.jsonl. The text is empty if the trainee looks up no rows.
  virtual std::string take_feature_rows() { return ""; }
  // Returns how many feature rows the steps since the last call found in memory and how many were
  // read from disk, as JSON for metrics.jsonl. The text is empty if all features are in memory.
  virtual std::string take_disk_reads() { return ""; }
  // Runs a step to its end and returns its loss.
  virtual double train_step(int64_t step, double lr) {
    double loss = 0;
    queue_step(step, lr);
    take_losses(loss);
    return loss;
  }
  // Returns the scores with the current weights; computes the loss of the validation vertices only
  // if `with_loss` is set.
  virtual Scores evaluate(bool with_loss) = 0;
};

}  // namespace nacre

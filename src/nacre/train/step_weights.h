// StepWeights: what the losses of batches are divided by if several batches make up a step. Their
// gradients then add up to the gradient of the joined batch, whichever rank computes which of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "nacre/sample/sample.h"
#include "nacre/train/batch_inputs.h"

namespace nacre {

class StepWeights {
 public:
  // `order` has the batches of all ranks. `inputs` must outlive this object. If `draws_seeds`,
  // batches have no seeds of their own (Sampler::draws_seeds()), and all batches of a step count
  // alike.
  StepWeights(const BatchInputs& inputs, BatchOrder order, bool draws_seeds);

  // Sets the number of batches of a step.
  void join(int64_t batches) { group_ = batches; }
  int64_t batches_per_step() const { return group_; }
  int64_t batches_per_epoch() const { return batches_; }
  // Returns the first batch after the step that begins with batch `first` of an epoch. Steps end at
  // multiples of batches_per_step().
  int64_t step_end(int64_t first) const { return std::min((first / group_ + 1) * group_, batches_); }
  // Says which epochs are shuffled, as BatchOrder::shuffle_from() does.
  void shuffle_from(uint64_t epoch);
  // Says that the batches of this epoch before `first` were part of earlier steps.
  void begin_epoch(uint64_t epoch, int64_t first);
  // Returns what the loss of a batch is divided by. Any thread may call this.
  LossTotal total(const SampleKey& key);

 private:
  const std::vector<double>& weights_of(uint64_t epoch);

  const BatchInputs& inputs_;
  std::mutex mutex_;  // guards everything below but the constants
  BatchOrder order_;
  const bool draws_seeds_;
  const int64_t batches_;
  int64_t group_ = 1;
  uint64_t epoch_ = 0;  // the epoch that begins with batch first_
  int64_t first_ = 0;
  std::map<uint64_t, std::vector<double>> weights_;  // by epoch: the weight of each batch
};

}  // namespace nacre

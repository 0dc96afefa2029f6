#include "nacre/train/step_weights.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "nacre/train/batch_computer.h"

namespace nacre {

StepWeights::StepWeights(const BatchInputs& inputs, BatchOrder order, bool draws_seeds)
    : inputs_(inputs), order_(std::move(order)), draws_seeds_(draws_seeds), batches_(order_.all_batches()) {}

void StepWeights::begin_epoch(uint64_t epoch, int64_t first) {
  const std::lock_guard lock(mutex_);
  epoch_ = epoch;
  first_ = first;
}

void StepWeights::shuffle_from(uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  order_.shuffle_from(epoch);
  weights_.clear();
}

LossTotal StepWeights::total(const SampleKey& key) {
  if (group_ == 1) return {};
  const std::lock_guard lock(mutex_);
  const auto batch = static_cast<int64_t>(key.batch);
  const int64_t begin = std::max(batch / group_ * group_, key.epoch == epoch_ ? first_ : 0);
  const int64_t end = step_end(batch);
  if (draws_seeds_) return {std::nullopt, end - begin};
  const std::vector<double>& weights = weights_of(key.epoch);
  return {std::accumulate(weights.begin() + begin, weights.begin() + end, 0.0), end - begin};
}

const std::vector<double>& StepWeights::weights_of(uint64_t epoch) {
  const auto found = weights_.find(epoch);
  if (found != weights_.end()) return found->second;
  // Batches of an epoch and of the one that follows it are prepared at the same time, so only the
  // weights of neighbouring epochs are kept.
  std::erase_if(weights_, [&](const auto& kept) { return kept.first + 1 < epoch || kept.first > epoch + 1; });
  order_.begin_epoch(epoch);
  std::vector<double>& weights = weights_[epoch];
  for (int64_t i = 0; i < batches_; ++i) weights.push_back(inputs_.weight_of(order_.batch(i)));
  return weights;
}

std::vector<LeafValue> BatchParts::gather(const Sample& sample, const SampleKey& key) const {
  return inputs.gather(dfg, sample, weights != nullptr ? weights->total(key) : LossTotal());
}

}  // namespace nacre

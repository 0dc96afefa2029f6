#include "nacre/schedule/sample_groups.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {

void SampleGroups::begin(uint64_t epoch, int64_t first, int64_t more) {
  // After the last batch of an epoch comes the first one of the next.
  const int64_t batches = order_.num_batches();
  const bool follows = next_ == batches ? epoch == epoch_ + 1 && first == 0 : epoch == epoch_ && first == next_;
  if (!follows) samples_.clear();
  epoch_ = epoch;
  next_ = first;
  end_epoch_ = epoch + 1 + static_cast<uint64_t>(more);
}

void SampleGroups::draw() {
  const int64_t batches = order_.num_batches();
  NACRE_CHECK(samples_.empty(), "the group before this one is not over");
  uint64_t epoch = next_ == batches ? epoch_ + 1 : epoch_;
  int64_t index = next_ == batches ? 0 : next_;
  for (int64_t left = context_.options.group; left > 0 && epoch < end_epoch_; ++epoch, index = 0) {
    const int64_t end = std::min(batches, index + left);
    left -= end - index;
    order_.begin_epoch(epoch);
    std::vector<Draw> draws;
    std::vector<Sample> drawn(static_cast<size_t>(end - index));
    draws.reserve(drawn.size());
    for (Sample& sample : drawn) draws.push_back({index++, &sample});
    draw_all(epoch, draws);
    std::move(drawn.begin(), drawn.end(), std::back_inserter(samples_));
  }
}

// One thread waits for the device. With a single thread, there is none for the host.
void SampleGroups::make_samplers(size_t threads) {
  while (samplers_.size() < threads) {
    std::unique_ptr<BatchSampler> second = samplers_.empty() ? nullptr : context_.sampler.make_second_sampler();
    if (second) together_ = true;
    samplers_.push_back(second ? std::move(second) : context_.sampler.make_batch_sampler());
  }
}

// Draws batches of one epoch. Each thread takes the next batch that nobody draws.
void SampleGroups::draw_all(uint64_t epoch, const std::vector<Draw>& draws) {
  const auto count = static_cast<int64_t>(draws.size());
  const auto threads = std::min<int64_t>(num_threads(), count);
  make_samplers(static_cast<size_t>(threads));
  std::atomic<int64_t> taken = 0, front = 0, back = count;
  parallel_tasks(threads, [&](int64_t t) {
    const bool from_back = together_ && t > 0;
    while (taken++ < count) {
      const int64_t i = from_back ? --back : front++;
      draw_one(*samplers_[t], epoch, draws[i]);
    }
  });
}

void SampleGroups::draw_one(BatchSampler& sampler, uint64_t epoch, const Draw& draw) {
  const SampleKey key{epoch, static_cast<uint64_t>(order_.number(draw.index))};
  for (int hop = 0; hop < context_.hops; ++hop) {
    {
      const StageSpan span(context_.clock, Stage::pick, hop);
      if (hop == 0)
        sampler.begin(context_.sampler.draws_seeds() ? std::span<const NodeId>() : order_.batch(draw.index), key);
      sampler.pick(hop);
    }
    const StageSpan span(context_.clock, Stage::insert, hop);
    sampler.insert(hop);
  }
  for (int hop = 0; hop < context_.hops; ++hop) {
    const StageSpan span(context_.clock, Stage::reindex, hop);
    sampler.reindex(hop);
  }
  *draw.to = sampler.finish();
}

Sample SampleGroups::take() {
  NACRE_CHECK(!samples_.empty(), "the batch was not drawn");
  if (next_ == order_.num_batches()) {
    ++epoch_;
    next_ = 0;
  }
  ++next_;
  Sample sample = std::move(samples_.front());
  samples_.pop_front();
  return sample;
}

}  // namespace nacre

#include "nacre/schedule/sample_groups.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {

void SampleGroups::begin(uint64_t epoch, int64_t first, int64_t more) {
  // The batch after the last one of an epoch is the first one of the next epoch.
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

// Makes a sampler for each thread. If a device and the host draw together, the first thread has the
// sampler of the device; with a single thread, the host then has none.
void SampleGroups::make_samplers(size_t threads) {
  while (samplers_.size() < threads) {
    std::unique_ptr<BatchSampler> second = samplers_.empty() ? nullptr : context_.sampler.make_second_sampler();
    if (second) together_ = true;
    samplers_.push_back(second ? std::move(second) : context_.sampler.make_batch_sampler());
  }
}

namespace {

// Sharing decides which sampler draws which batch of an epoch.
class Sharing {
 public:
  Sharing(size_t samplers, int64_t batches, bool together)
      : together_(together), back_(batches), ends_(samplers, 0), draws_(samplers, true) {}

  // Returns the next batch that this sampler draws, or -1 if it draws no more. `seconds` has, for
  // each sampler, the seconds that it is expected to take for a batch; it is empty if they are not
  // known yet. `now` is the time.
  int64_t next(size_t sampler, double now, const std::vector<double>& seconds) {
    if (front_ == back_ || (!seconds.empty() && !is_needed(sampler, now, seconds))) {
      draws_[sampler] = false;
      return -1;
    }
    ends_[sampler] = now + (seconds.empty() ? 0 : seconds[sampler]);
    return together_ && sampler > 0 ? --back_ : front_++;
  }

 private:
  // Returns whether the batches that are left end earliest if this sampler draws one of them. A
  // sampler that has stopped drawing does not start again, so the last sampler that draws is always
  // needed.
  bool is_needed(size_t sampler, double now, const std::vector<double>& seconds) const {
    std::vector<double> speeds, free;
    size_t own = 0;
    for (size_t s = 0; s < seconds.size(); ++s) {
      if (!draws_[s]) continue;
      if (s == sampler) own = speeds.size();
      speeds.push_back(1 / std::max(seconds[s], 1e-9));
      free.push_back(s == sampler ? 0 : std::max(0.0, ends_[s] - now));
    }
    const std::vector<double> jobs(static_cast<size_t>(back_ - front_), 1.0);
    const std::vector<int> drawn_by = share_jobs_greedily(jobs, speeds, free).machine;
    return std::find(drawn_by.begin(), drawn_by.end(), static_cast<int>(own)) != drawn_by.end();
  }

  bool together_;
  int64_t front_ = 0, back_;  // batches [front_, back_) are left
  std::vector<double> ends_;  // when each sampler is expected to end its batch
  std::vector<bool> draws_;   // whether each sampler still draws
};

}  // namespace

// Draws batches of one epoch on all threads. Each thread draws the next batch that no other thread
// draws, until none is left for it.
void SampleGroups::draw_all(uint64_t epoch, const std::vector<Draw>& draws) {
  const auto count = static_cast<int64_t>(draws.size());
  const auto threads = static_cast<size_t>(std::min<int64_t>(num_threads(), count));
  make_samplers(threads);
  std::mutex mutex;
  Sharing sharing(threads, count, together_);
  const auto next = [&](size_t sampler) {
    const std::lock_guard lock(mutex);
    std::vector<double> seconds;
    if (together_ && !device_seconds_.knows_nothing() && !host_seconds_.knows_nothing()) {
      for (size_t s = 0; s < threads; ++s) seconds.push_back(seconds_of(s).forecast());
    }
    return sharing.next(sampler, static_cast<double>(steady_ns()) * 1e-9, seconds);
  };
  parallel_tasks(static_cast<int64_t>(threads), [&](int64_t t) {
    const auto sampler = static_cast<size_t>(t);
    for (int64_t i = next(sampler); i >= 0; i = next(sampler)) {
      const int64_t begin = steady_ns();
      draw_one(*samplers_[sampler], epoch, draws[i]);
      context_.clock.add_drawn(together_ && sampler > 0);
      const std::lock_guard lock(mutex);
      seconds_of(sampler).observe(static_cast<double>(steady_ns() - begin) * 1e-9);
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

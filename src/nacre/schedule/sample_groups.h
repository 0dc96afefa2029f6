// SampleGroups: group-based in-turn pipelining (DAHA). The samples of many batches, also of several
// epochs, are drawn together before the first of them is loaded. Only the samples are kept
// meanwhile, no features. If a device draws beside the host (Sampler::draw_with()), the device
// takes batches from the front of a group and the host from its back, until they meet. Drawing
// times are forecast (progressive scheduling), so that a slow sampler does not begin a batch which
// the other samplers would end earlier. Only files of this room include this header.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "nacre/schedule/batch_job.h"
#include "nacre/schedule/epg/uniform_machines.h"

namespace nacre {

// SampleGroups draws the samples of groups of batches. Only one thread at a time may call its
// functions.
class SampleGroups {
 public:
  // Makes an object without samples. `order` is the order in which the loader takes the batches.
  SampleGroups(LoaderContext& context, BatchOrder order) : context_(context), order_(std::move(order)) {}

  // Makes batch `first` of `epoch` the next one that is taken; `more` epochs follow this one.
  // Samples of other batches are dropped.
  void begin(uint64_t epoch, int64_t first, int64_t more);
  // Says that `epoch` begins and that `more` epochs follow it. The first batches of the epoch may
  // have been taken before this call.
  void go_on(uint64_t epoch, int64_t more) { end_epoch_ = epoch + 1 + static_cast<uint64_t>(more); }
  // Returns whether the sample of the next batch is drawn.
  bool has_next() const { return !samples_.empty(); }
  // Draws the next group, with all threads. The group has as many batches as LoaderOptions::group
  // says, or all that are left if these are fewer.
  void draw();
  // Returns the sample of the next batch, which must have been drawn. Then the batch after it is
  // the next one.
  Sample take();

 private:
  // Names one batch of a group, and the place of its sample.
  struct Draw {
    int64_t index;
    Sample* to;
  };
  void make_samplers(size_t threads);
  void draw_all(uint64_t epoch, const std::vector<Draw>& draws);
  MovingMedian& seconds_of(size_t sampler) { return together_ && sampler == 0 ? device_seconds_ : host_seconds_; }
  void draw_one(BatchSampler& sampler, uint64_t epoch, const Draw& draw);

  LoaderContext& context_;
  BatchOrder order_;
  // These are the epoch of the next batch, and the first epoch of which no batch will be taken.
  uint64_t epoch_ = 0, end_epoch_ = 1;
  // This is the number of the next batch in its epoch.
  int64_t next_ = 0;
  // These are the samples of the next batch and of those batches after it that are drawn.
  std::deque<Sample> samples_;
  // There is a sampler for each thread. If a device and the host draw together, the first sampler
  // is the device's.
  std::vector<std::unique_ptr<BatchSampler>> samplers_;
  bool together_ = false;
  // These forecast the seconds in which the device, and one thread of the host, draw a batch, from
  // the times of the last batches.
  MovingMedian device_seconds_, host_seconds_;
};

}  // namespace nacre

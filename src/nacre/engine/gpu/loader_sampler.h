// The loader's batches drawn on a device: several ahead at once, brought to the host one by one.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "nacre/engine/gpu/sampler.h"

namespace nacre {

class DeviceSampling : public std::enable_shared_from_this<DeviceSampling> {
 public:
  struct Options {
    int ahead = 1;            // batches drawn at once
    GpuSampler::Parts parts;  // brought to the host
  };
  // `order` is the loader's. `sampler` must outlive this.
  DeviceSampling(std::shared_ptr<GpuLoader> loader, const Sampler& sampler, BatchOrder order, const Options& options);

  // For Sampler::draw_with(). What it makes keeps this alive; any thread.
  std::unique_ptr<BatchSampler> make_batch_sampler();
  // A batch's sample. Those after it in the order are drawn with it.
  Sample take(std::span<const NodeId> seeds, const SampleKey& key);
  int hops() const { return hops_; }

 private:
  void draw(std::span<const NodeId> seeds, const SampleKey& key);

  int hops_;
  Options options_;
  std::mutex mutex_;
  GpuSampler sampler_;
  BatchOrder order_;
  uint64_t epoch_ = 0;
  std::map<uint64_t, DeviceSample> drawn_;  // of the epoch, by batch
};

}  // namespace nacre

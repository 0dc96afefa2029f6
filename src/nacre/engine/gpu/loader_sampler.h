// The loader's batches drawn on a device: several ahead at once, brought to the host one by one.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

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
  using Turn = std::pair<uint64_t, uint64_t>;  // epoch, batch

  void know(uint64_t epoch);
  void draw(std::span<const NodeId> seeds, const SampleKey& key);

  int hops_;
  Options options_;
  std::mutex mutex_;
  GpuSampler sampler_;
  // A loader goes from one epoch into the next: batches of both are asked for side by side.
  std::array<BatchOrder, 2> orders_;  // of epochs 2 k and 2 k + 1
  std::array<uint64_t, 2> epochs_{0, 1};
  std::map<Turn, DeviceSample> drawn_;  // of these epochs
};

}  // namespace nacre

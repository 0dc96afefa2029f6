// DeviceSampling: draws the mini-batches of the batch loader on a device. Several batches are drawn
// at once, ahead of their use, and are copied to the host one by one.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "nacre/engine/gpu/sampler.h"

namespace nacre {

class DeviceSampling : public std::enable_shared_from_this<DeviceSampling> {
 public:
  struct Options {
    int ahead = 1;            // number of batches that are drawn at once
    GpuSampler::Parts parts;  // parts of a sample that are copied to the host
    // Says, for the number of a batch in its epoch, whether somebody else draws it, so that it is
    // not drawn ahead. If this is empty, all batches are drawn here.
    std::function<bool(int64_t)> skips = {};
  };
  // `order` is that of the batch loader. `sampler` must outlive this object.
  DeviceSampling(std::shared_ptr<GpuCompiler> compiler, const Sampler& sampler, const BatchOrder& order,
                 const Options& options);

  // Returns a sampler for Sampler::draw_with(). The sampler keeps this object alive. Any thread may
  // call this function.
  std::unique_ptr<BatchSampler> make_batch_sampler();
  // Returns the sample of a batch. If it is not drawn yet, draws it together with the batches that
  // follow it in the order.
  Sample take(std::span<const NodeId> seeds, const SampleKey& key);
  // Takes another order of the batches, and drops the samples that were drawn in the old one.
  void reorder(const BatchOrder& order);
  int hops() const { return hops_; }

 private:
  using Turn = std::pair<uint64_t, uint64_t>;  // numbers of the epoch and of the batch

  void know(uint64_t epoch);
  void draw(std::span<const NodeId> seeds, const SampleKey& key);

  int hops_;
  Options options_;
  std::mutex mutex_;
  GpuSampler sampler_;
  // Two epochs are known at a time: when the loader goes from one epoch to the next, it requests
  // batches of both.
  std::array<BatchOrder, 2> orders_;  // orders of the epochs in epochs_
  std::array<uint64_t, 2> epochs_{0, 1};
  std::map<Turn, DeviceSample> drawn_;  // samples of these epochs that nobody has taken yet
};

}  // namespace nacre

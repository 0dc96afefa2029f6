// GpuDevice: a GPU, or some of its multiprocessors, as the device of a run.
#pragma once

#include <memory>
#include <string>

#include "nacre/engine/gpu/context.h"
#include "nacre/train/device.h"

namespace nacre {

class GpuDevice : public RunDevice {
 public:
  GpuDevice(const DeviceChoice& choice, std::shared_ptr<GpuContext> context);

  const std::shared_ptr<GpuContext>& context() const { return context_; }
  // Opens the GPU a second time, for work beside the run's. Returns null if the run has only some
  // of the GPU's multiprocessors.
  std::shared_ptr<GpuCompiler> open_beside() const;

  int64_t memory_limit(const RunConfig& config, int64_t left) const override;
  int64_t free_at_start() const override;
  int64_t peak_bytes() const override;
  std::shared_ptr<GpuCompiler> gpu_compiler() const override { return context_->shared_compiler(); }
  std::shared_ptr<Device> gpu() const override { return context_->shared_device(); }
  int batches_ahead() const override;
  DrawAnswer draw_batches(const DrawRequest& request) const override;
  std::unique_ptr<BatchComputer> make_batch_computer(const BatchParts& parts) const override;
  std::unique_ptr<Scorer> make_scorer(const RunData& run) const override;

 private:
  DeviceChoice choice_;
  std::shared_ptr<GpuContext> context_;
};

// Opens the GPU that `choice` names as the device of a run.
std::shared_ptr<const GpuDevice> open_gpu(const DeviceChoice& choice, const RunConfig& config,
                                          std::shared_ptr<GraphViews> views);
// Returns a back end for the GPU that `gpu` describes, which need not exist. Plans can be made and
// memory can be counted with it, but it runs nothing.
std::shared_ptr<Backend> absent_gpu(const DeviceInfo& gpu, const RunConfig& config, std::shared_ptr<GraphViews> views);
// Returns the context of `device`, which must be a GPU.
GpuContext& gpu_of(const RunDevice& device);

}  // namespace nacre

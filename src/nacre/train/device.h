// The device that a run computes on (--device, --precision).
#pragma once

#include <memory>
#include <string>

#include "nacre/engine/backend.h"
#include "nacre/engine/gpu/context.h"
#include "nacre/train/config.h"

namespace nacre {

// What --device asks for: auto (the first GPU, or the CPU if there is no GPU), cpu, cuda (the first
// GPU), cuda:1 (the second GPU), or cuda:0@32 (32 multiprocessors of the first GPU).
struct DeviceChoice {
  bool gpu = false;
  int index = 0;
  int multiprocessors = 0;  // 0 = all
};
// Returns the device of that name. Throws a UserError if the device or the precision does not exist
// here.
DeviceChoice choose_device(const std::string& device, const std::string& precision);

// The device of a run, opened. `gpu` is null on the host.
struct RunDevice {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<GpuContext> gpu;
  std::string name;  // "cpu", or the name of the GPU
};
RunDevice open_device(const RunConfig& config, std::shared_ptr<GraphViews> views);
// Returns how many mini-batches are prepared ahead if --prefetch is not given.
int batches_ahead(const RunDevice& device);
// Throws a UserError if --features-on or --sample-on has an unknown value, or says device and the
// run computes on the host.
void check_places(const RunConfig& config);
// Opens the GPU of the run a second time, for work beside the run's. Returns null on the host, and
// if the run has only some of the GPU's multiprocessors.
std::shared_ptr<GpuCompiler> open_beside(const RunConfig& config);

}  // namespace nacre

// Where a run takes place (--device, --precision).
#pragma once

#include <memory>
#include <string>

#include "nacre/engine/backend.h"
#include "nacre/engine/gpu/context.h"
#include "nacre/train/config.h"

namespace nacre {

// auto: the first GPU if there is one; cpu; cuda; cuda:1, the second GPU; cuda:0@32, 32
// multiprocessors of the first.
struct DeviceChoice {
  bool gpu = false;
  int index = 0;
  int multiprocessors = 0;  // 0 = all
};
// Throws UserError when the device or the precision does not exist here.
DeviceChoice choose_device(const std::string& device, const std::string& precision);

// A run's back end; `gpu` is null on the host.
struct RunDevice {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<GpuContext> gpu;
  std::string name;  // "cpu", or the GPU's
};
RunDevice open_device(const RunConfig& config, std::shared_ptr<GraphViews> views);
// How many mini-batches are prepared ahead where nobody says.
int batches_ahead(const RunDevice& device);
// Refuses (UserError) --features-on and --sample-on that mean nothing, or a device where the run
// has none.
void check_places(const RunConfig& config);
// The same GPU once more, for work beside the run's; null for virtual devices and on the host.
std::shared_ptr<GpuCompiler> open_beside(const RunConfig& config);

}  // namespace nacre

// Where a run takes place (--device, --precision), and the training state that lives there when it is not the host.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/backend.h"
#include "nacre/engine/gpu/optimizer.h"
#include "nacre/train/config.h"
#include "nacre/train/parameters.h"

namespace nacre {

// auto: the first GPU if there is one; cpu; cuda; cuda:1, the second GPU; cuda:0@32, 32 multiprocessors of the first.
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
// The same GPU once more, for work beside the run's; null for virtual devices and on the host.
std::shared_ptr<GpuLoader> open_beside(const RunConfig& config);

// Leaves, parameters and optimiser of a run in device memory. The host's copies are brought up to date by pull().
class DeviceState {
 public:
  DeviceState(std::shared_ptr<GpuContext> gpu, const Parameters& parameters);

  // Device copy of a leaf that no step writes, made at the first call.
  void* leaf(const std::string& name, const void* host, int64_t bytes);
  float* parameters() { return static_cast<float*>(values_.get()); }
  // Readies the optimiser; gradients in device memory, one for each parameter of the list.
  void start(const Optimizer& optimizer, const Parameters& parameters, const std::vector<const float*>& gradients);
  // Applies the gradients.
  void update(double lr);
  void push(const Parameters& parameters, Optimizer* optimizer);
  void pull(Parameters& parameters, Optimizer* optimizer);
  int64_t leaf_bytes() const { return leaf_bytes_; }

 private:
  std::shared_ptr<GpuContext> gpu_;
  std::map<std::string, std::shared_ptr<void>> leaves_;
  int64_t leaf_bytes_ = 0;
  std::shared_ptr<void> values_;
  std::unique_ptr<GpuOptimizer> optimizer_;
};

}  // namespace nacre

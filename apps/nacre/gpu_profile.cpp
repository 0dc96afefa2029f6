#include "gpu_profile.h"

#include "nacre/base/log.h"

namespace nacre::cli {

GpuProfile gpu_profile(DevicePlugin& plugin, Device& device) {
  const DeviceInfo& info = device.info();
  if (auto stored = load_gpu_profile(gpu_label(info.name, info.multiprocessors))) return std::move(*stored);
  log_info("measuring the GPU once, so that kernels can be compared with what it can do at best");
  GpuProfile profile = measure_gpu(plugin, device);
  save_gpu_profile(profile);
  return profile;
}

}  // namespace nacre::cli

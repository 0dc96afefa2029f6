// Measures a GPU for its profile (nacre/cost/gpu_profile.h).
#pragma once

#include "nacre/cost/gpu_profile.h"
#include "nacre/device/device.h"

namespace nacre::cli {

// Measures a GPU and returns its profile. This takes a few seconds and at most a quarter of the
// free device memory.
GpuProfile measure_gpu(DevicePlugin& plugin, Device& device);

// Returns the stored profile; if there is none, measures and stores it first.
GpuProfile gpu_profile(DevicePlugin& plugin, Device& device);

}  // namespace nacre::cli

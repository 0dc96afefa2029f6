// The measured rates of a GPU, kept in one JSON file for each GPU in the user's cache folder.
// `nacre explain` compares kernels with these rates. `nacre profile --device cuda` measures them
// again.
#pragma once

#include <span>
#include <string>

#include "nacre/cost/profile.h"
#include "nacre/device/device.h"

namespace nacre::cli {

// Bytes and operations are per second.
struct GpuProfile {
  // Name and number of multiprocessors; a profile is only valid for this GPU.
  std::string device;
  int64_t l2_bytes = 0;  // as reported by the device
  // copies inside the device, bytes read and written
  double copy = 0;
  double far_16 = 0, far_64 = 0, far_256 = 0;     // gathered rows of so many floats from memory
  double near_16 = 0, near_64 = 0, near_256 = 0;  // gathered rows from the L2 cache
  double f32 = 0, tf32 = 0, bf16 = 0;             // large matrix products
  // Seconds that an empty kernel takes, launched by itself and in a graph.
  double launch = 0, graph_launch = 0;
  double up_pinned = 0, up_pageable = 0;      // host to device
  double down_pinned = 0, down_pageable = 0;  // device to host
};

// The figures by their names in JSON, for tables; a table shows value · factor.
struct GpuFigure {
  const char* key;
  double GpuProfile::*value;
  double factor;
  const char* unit;
  const char* what;
};
std::span<const GpuFigure> gpu_figures();

// Measures a GPU. Takes a few seconds and at most a quarter of the free device memory.
GpuProfile measure_gpu(DevicePlugin& plugin, Device& device);

// Returns the stored profile; if there is none, measures and stores it first.
GpuProfile gpu_profile(DevicePlugin& plugin, Device& device);
std::string gpu_profile_json(const GpuProfile& profile);
// Returns whether the profile could be stored; if not, a warning says why.
bool save_gpu_profile(const GpuProfile& profile);
std::string gpu_label(const DeviceInfo& info);  // for example "NVIDIA H200, 132 multiprocessors"

// Returns a profile for the planner's predictions: the measured figures, and nominal figures for
// the rest.
DeviceProfile planning_profile(const GpuProfile& profile, GemmType precision);

}  // namespace nacre::cli

// What a GPU was measured to do, kept in one JSON file per GPU in the user's cache folder: the
// denominators of `nacre explain`. `nacre profile --device cuda` measures anew.
#pragma once

#include <span>
#include <string>

#include "nacre/cost/profile.h"
#include "nacre/device/device.h"

namespace nacre::cli {

// Bytes and operations are per second.
struct GpuProfile {
  // name and multiprocessors: a profile is only valid for this
  std::string device;
  int64_t l2_bytes = 0;                           // as the device says
  double copy = 0;                                // inside the device, read + written
  double far_16 = 0, far_64 = 0, far_256 = 0;     // rows of so many floats gathered from memory
  double near_16 = 0, near_64 = 0, near_256 = 0;  // from the L2 cache
  double f32 = 0, tf32 = 0, bf16 = 0;             // large matrix products
  // seconds: an empty kernel by itself, and in a graph
  double launch = 0, graph_launch = 0;
  double up_pinned = 0, up_pageable = 0;      // host to device
  double down_pinned = 0, down_pageable = 0;  // and back
};

// The figures by the names that JSON has, for tables: shown as value · factor.
struct GpuFigure {
  const char* key;
  double GpuProfile::*value;
  double factor;
  const char* unit;
  const char* what;
};
std::span<const GpuFigure> gpu_figures();

// A few seconds; takes at most a quarter of the free device memory meanwhile.
GpuProfile measure_gpu(DevicePlugin& plugin, Device& device);

// The stored profile; measured and stored first when there is none.
GpuProfile gpu_profile(DevicePlugin& plugin, Device& device);
std::string gpu_profile_json(const GpuProfile& profile);
// Whether it could be kept; otherwise a warning says why.
bool save_gpu_profile(const GpuProfile& profile);
std::string gpu_label(const DeviceInfo& info);  // "NVIDIA H200, 132 multiprocessors"

// For the planner's predictions: what was measured, and nominal figures for the rest.
DeviceProfile planning_profile(const GpuProfile& profile, GemmType precision);

}  // namespace nacre::cli

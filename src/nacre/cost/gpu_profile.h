// GpuProfile: the measured rates of a GPU, kept in one JSON file for each GPU in the user's cache
// folder. `nacre profile --device cuda` measures them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "nacre/cost/device_traits.h"
#include "nacre/cost/profile.h"

namespace nacre {

// Holds the measured rates of one GPU: bytes per second or operations per second, unless a comment
// says something else.
struct GpuProfile {
  // This is the label of the GPU (gpu_label()): its name and its number of multiprocessors. A
  // profile is only valid for this GPU.
  std::string device;
  int64_t l2_bytes = 0;  // size of the second-level cache, as the device reports it
  // `copy` is the rate of copies inside the device. Bytes that are read and bytes that are written
  // both count.
  double copy = 0;
  double far_16 = 0, far_64 = 0, far_256 = 0;     // gathered rows of so many floats from memory
  double near_16 = 0, near_64 = 0, near_256 = 0;  // gathered rows from the L2 cache
  double f32 = 0, tf32 = 0, bf16 = 0;             // operations of large matrix products
  // These are the seconds that an empty kernel takes, launched by itself and in a graph.
  double launch = 0, graph_launch = 0;
  double up_pinned = 0, up_pageable = 0;      // copies from the host to the device
  double down_pinned = 0, down_pageable = 0;  // copies from the device to the host
  // These are the rates at which a kernel gathers rows of so many floats from page-locked memory of
  // the host.
  double link_64 = 0, link_256 = 0;
};

// GpuFigure describes one figure of a profile: its key in JSON, and its unit and description in
// tables. A table shows value · factor.
struct GpuFigure {
  const char* key;
  double GpuProfile::*value;
  double factor;
  const char* unit;
  const char* what;
};
std::span<const GpuFigure> gpu_figures();

// Returns the stored profile of the GPU with the label `device`; nothing if there is none. A file
// that cannot be used is reported as a warning.
std::optional<GpuProfile> load_gpu_profile(const std::string& device);
std::string gpu_profile_json(const GpuProfile& profile);
// Stores the profile, and returns whether that succeeded; if not, a warning says why.
bool save_gpu_profile(const GpuProfile& profile);
// Returns the label that names a GPU in its profile, for example "NVIDIA H200, 132
// multiprocessors".
std::string gpu_label(const std::string& name, int multiprocessors);

// Returns a profile for the planner's predictions: the measured figures, and nominal figures for
// the rest.
DeviceProfile planning_profile(const GpuProfile& profile, GemmType precision);

// Returns the measured rates by which variants of kernels are compared. How much slower products by
// cell are than the library's products was not measured; that figure is nominal.
VariantRates variant_rates(const GpuProfile& profile, GemmType precision);

}  // namespace nacre

// Tells at which rates a GPU gets the feature rows of a batch. By these rates, Nacre chooses where
// features lie and how rows of the host reach the device.
#pragma once

#include <cstdint>
#include <optional>

#include "nacre/cost/gpu_profile.h"

namespace nacre {

// Holds the rates, all in bytes per second, at which feature rows reach a GPU.
struct FeatureRates {
  double device = 3.5e12;  // rows gathered from the device's own memory
  double peer = 200e9;     // rows gathered from the memory of a connected device
  double link = 45e9;      // rows that a kernel gathers from page-locked memory of the host
  double copy = 50e9;      // copies from page-locked memory of the host to the device
  double threads = 12e9;   // rows that all threads of the host together gather
  bool measured = false;   // whether nacre profile has measured the GPU

  // These functions return the seconds that a host row of `row_bytes` bytes takes to reach the
  // device: seconds_by_link() if kernels read the row over the link, seconds_by_copy() if threads
  // of the host gather it and it is copied. Copies run while threads gather.
  double seconds_by_link(int64_t row_bytes) const { return static_cast<double>(row_bytes) / link; }
  double seconds_by_copy(int64_t row_bytes) const;
};

// Returns the rates for rows of `row_bytes` bytes. Rates that were not measured are nominal.
// `host_gather` is the measured rate of the host's threads; 0 means that it was not measured.
FeatureRates feature_rates(const std::optional<GpuProfile>& gpu, double host_gather, int64_t row_bytes);

}  // namespace nacre

// Measures this machine: runs the kernels of several models on generated graphs of different sizes, and fits the cost
// model to their times. A few seconds; the result is kept (cost/profile.h).
#pragma once

#include "nacre/cost/profile.h"

namespace nacre {

struct CalibrateOptions {
  double seconds = 8;  // about how long it may take
};

// Kernels timed on the generated graphs.
std::vector<Timing> calibration_samples(int64_t cache_bytes, const CalibrateOptions& options);

// Rates of the machine and the fitted model.
DeviceProfile measure_profile(const CalibrateOptions& options = {});

// The stored profile of this machine; measured and stored first when there is none (`say`: progress on the log).
DeviceProfile machine_profile(bool say = true);

// Changes with the kernels: profiles of other versions are not used.
inline constexpr const char* kProfileVersion = "cpu-3";

}  // namespace nacre

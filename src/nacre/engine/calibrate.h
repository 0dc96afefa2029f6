// These functions measure this machine: they run the kernels of several models on generated graphs
// of different sizes, and fit the cost model to their times. This takes a few seconds; the result
// is stored (cost/profile.h).
#pragma once

#include "nacre/cost/profile.h"

namespace nacre {

struct CalibrateOptions {
  double seconds = 8;  // about how many seconds it may take
};

// Returns the times of kernels on the generated graphs.
std::vector<Timing> calibration_samples(int64_t cache_bytes, const CalibrateOptions& options);

// Returns the rates of the machine and the fitted model.
DeviceProfile measure_profile(const CalibrateOptions& options = {});

// Returns the stored profile of this machine; if there is none, measures and stores it first. With
// `say`, logs that it measures.
DeviceProfile machine_profile(bool say = true);

// This text must change whenever the kernels change, because profiles of other versions are not
// used.
inline constexpr const char* kProfileVersion = "cpu-3";

}  // namespace nacre

// What this machine was measured to do: kept in one JSON file per machine in the user's cache
// folder, so that planning starts from figures. `nacre profile` measures anew.
#pragma once

#include <optional>
#include <string>

#include "nacre/cost/model.h"

namespace nacre {

struct DeviceProfile {
  // name of the processor and number of threads used: a profile is only valid for this
  std::string machine;
  std::string version;           // of the kernels it was measured with
  int64_t cache_bytes = 0;       // last-level cache
  double gemm_flops = 0;         // per second, large f32 products
  double stream_bytes = 0;       // per second, read + write of a large array
  double near_gather_bytes = 0;  // per second, rows of 1 KiB from the last-level cache
  double far_gather_bytes = 0;   // per second, rows of 1 KiB from memory
  double launch_seconds = 0;     // of an empty parallel loop
  CostModel model;
};

std::string profile_json(const DeviceProfile& profile);
DeviceProfile parse_profile(const std::string& json, const std::string& where);  // throws UserError

// $NACRE_CACHE, or $XDG_CACHE_HOME/nacre, or ~/.cache/nacre; empty when none of the variables is
// set.
std::string cache_folder();
// Absent, unreadable or of another machine or version: nothing. A file that is there and not used
// is reported once, as a warning.
std::optional<DeviceProfile> load_profile(const std::string& machine, const std::string& version);
// written aside and renamed; a failure is only a warning
void save_profile(const DeviceProfile& profile);

// "AMD EPYC ..., 2 threads"
std::string machine_name(int threads);

}  // namespace nacre

// DeviceProfile: the measured rates of this machine. They are kept in one JSON file for each
// machine in the user's cache folder, so that planning starts from figures. `nacre profile`
// measures them again.
#pragma once

#include <optional>
#include <string>

#include "nacre/cost/model.h"

namespace nacre {

struct DeviceProfile {
  // This text has the name of the processor and the number of threads. A profile is only valid for
  // this combination.
  std::string machine;
  std::string version;      // version of the kernels that were measured
  int64_t cache_bytes = 0;  // size of the last-level cache
  double gemm_flops = 0;    // operations per second of large f32 products
  double stream_bytes = 0;  // bytes per second of reading and writing a large array
  // This is the rate, in bytes per second, at which rows of 1 KiB are gathered from the last-level
  // cache.
  double near_gather_bytes = 0;
  double far_gather_bytes = 0;  // bytes per second of gathering rows of 1 KiB from memory
  double launch_seconds = 0;    // seconds that an empty parallel loop takes
  CostModel model;
};

std::string profile_json(const DeviceProfile& profile);
DeviceProfile parse_profile(const std::string& json, const std::string& where);  // throws UserError

// Returns $NACRE_CACHE, or $XDG_CACHE_HOME/nacre, or ~/.cache/nacre; empty if none of the variables
// is set.
std::string cache_folder();
// Returns the machine's profile; nothing if the file is absent, unreadable, or from another machine
// or version. Warns once about a file that is there and cannot be used.
std::optional<DeviceProfile> load_profile(const std::string& machine, const std::string& version);
// Stores the profile in the cache folder, by a temporary file that is renamed. If that fails, only
// warns.
void save_profile(const DeviceProfile& profile);

// Returns the machine's name with the number of threads, such as "AMD EPYC ..., 2 threads".
std::string machine_name(int threads);

}  // namespace nacre

// What this machine can do, measured in a second or so: the denominators of "time over the floor".
#pragma once

#include <cstdint>

namespace nacre::cli {

struct MachineRates {
  double bytes_per_second = 0;  // streaming reads by all threads
  double flops_per_second = 0;  // f32 matrix product by all threads
};
MachineRates measure_rates();

}  // namespace nacre::cli

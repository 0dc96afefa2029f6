// Measures the rates of this machine in about a second. The "time over the floor" of a kernel is
// its time divided by the time that these rates allow.
#pragma once

#include <cstdint>

namespace nacre::cli {

struct MachineRates {
  double bytes_per_second = 0;  // streaming reads by all threads
  double flops_per_second = 0;  // f32 matrix product by all threads
};
MachineRates measure_rates();

}  // namespace nacre::cli

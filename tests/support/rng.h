// Draws random numbers for tests. The same seed gives the same sequence on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "nacre/base/philox.h"

namespace nacre::test {

class Rng {
 public:
  explicit Rng(uint64_t seed) : key_(mix_key(seed, 0x7465737473)) {}

  double uniform() {  // returns a number in [0, 1)
    const PhiloxBlock block = philox(key_, 0, next_++);
    return uniform01(block[0], block[1]);
  }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t key_;
  uint64_t next_ = 0;
};

}  // namespace nacre::test

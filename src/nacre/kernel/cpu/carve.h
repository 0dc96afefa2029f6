// Cuts a workspace into parts.
#pragma once

#include <cstdint>

namespace nacre::cpu {

// Hands out consecutive parts of a workspace, each starting on a cache line of its own. With a null
// base it only counts how much is used.
class Carve {
 public:
  explicit Carve(float* base) : base_(base) {}
  float* take(int64_t floats) {
    float* part = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (floats + 15) / 16 * 16;
    return part;
  }
  int64_t used() const { return used_; }

 private:
  float* base_;
  int64_t used_ = 0;
};

}  // namespace nacre::cpu

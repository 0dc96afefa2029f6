// Parts of a workspace.
#pragma once

#include <cstdint>

namespace nacre::cpu {

// Hands out consecutive parts of a workspace, each on a cache line of its own; with a null base it
// only counts.
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

// The random numbers of dropout are a function of (seed, step, salt, element), so every back end
// drops the same elements, in whatever order it visits them.
#pragma once

#include <algorithm>
#include <cmath>

#include "nacre/base/philox.h"

namespace nacre {

// There is one stream for each pair of run seed and dropout node, and one counter for each training
// step.
struct DropoutStream {
  uint64_t key;
  uint64_t step;
  DropoutStream(uint64_t seed, uint64_t salt, uint64_t at_step) : key(mix_key(seed, salt)), step(at_step) {}
};

// Returns whether element i of the tensor is kept: its 16 random bits must reach the threshold.
// Elements 8k … 8k+7 share one Philox block, two to a word, the low half first. Only 16 bits are
// used because the random numbers take most of the time of dropout; 16 bits give the share to
// within 0.001 %.
inline bool dropout_keep(const DropoutStream& stream, uint64_t element, uint32_t threshold) {
  const uint32_t word = philox(stream.key, stream.step, element / 8)[element % 8 / 2];
  return ((word >> (element % 2 * 16)) & 0xFFFF) >= threshold;
}

// Returns the threshold for a share p of dropped elements. The threshold is at most 65535, so that
// even the largest share keeps something.
inline uint32_t dropout_threshold(double p) {
  return static_cast<uint32_t>(std::min(65535L, std::lround(p * 65536.0)));
}

}  // namespace nacre

// Defines bf16, numbers of 16 bits with the exponent of a float. Values are stored and sent as bf16
// to save memory and time.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace nacre {

inline float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Returns the bf16 number that is nearest to `value`; of two that are equally near, the one whose
// last bit is 0. A NaN stays a NaN. The kernels of GPUs round in the same way
// (kernel/cuda/source.cpp).
inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace nacre

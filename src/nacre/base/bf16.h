// Numbers of 16 bits with the exponent of a float (bf16), as values are stored and sent to save
// memory and time.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace nacre {

inline float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Rounds to the nearest number, and to the even one of two. What is not a number stays so. The
// kernels of GPUs round in the same way (kernel/cuda/source.cpp).
inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace nacre

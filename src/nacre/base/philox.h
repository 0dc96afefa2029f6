// Philox4x32-10 (Salmon et al., SC '11): counter-based random numbers. A number depends only on the
// key and the counter, so the same stream comes out on any number of threads and on any device.
#pragma once

#include <array>
#include <cstdint>

namespace nacre {

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox(uint64_t key, uint64_t counter_hi, uint64_t counter_lo) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  PhiloxBlock c = {static_cast<uint32_t>(counter_lo), static_cast<uint32_t>(counter_lo >> 32),
                   static_cast<uint32_t>(counter_hi), static_cast<uint32_t>(counter_hi >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// Returns a key that depends on both words, mixed with the finaliser of splitmix64. Streams that
// are named by several numbers get their keys in this way.
inline uint64_t mix_key(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15ull * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Returns a number in [0, 1) with 24 random bits.
inline float uniform01(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24f; }
// Returns a number in [0, 1) with 53 random bits.
inline double uniform01(uint32_t hi, uint32_t lo) {
  return static_cast<double>(((uint64_t{hi} << 32) | lo) >> 11) * 0x1.0p-53;
}

}  // namespace nacre

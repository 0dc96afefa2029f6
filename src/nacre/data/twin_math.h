// Arithmetic that gives the same bits everywhere. The functions pow, log and exp of the C library
// differ between versions, and between processors with and without fused multiply-add, and one
// different bit would move an edge.
#pragma once

#include <bit>
#include <cstdint>

#include "nacre/base/philox.h"

namespace nacre {

// Returns the natural logarithm of a normal positive number, computed with + - * / alone.
inline double portable_log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  auto m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // Uses log m = 2 artanh t with |t| < 0.1716.
  const double t = (m - 1) / (m + 1);
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * t * t + 1.0 / k;
  return 2 * t * sum + exponent * 0.6931471805599453;
}

// Returns e^x for |x| < 700.
inline double portable_exp(double x) {
  const double scaled = x * 1.4426950408889634;
  const auto n = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = x - n * 0.6931471805599453;
  double sum = 1;
  for (int k = 15; k >= 1; --k) sum = 1 + sum * r / k;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

inline double portable_pow(double base, double exponent) { return portable_exp(exponent * portable_log(base)); }

// Returns an approximately normal number with mean 0 and variance 1: the scaled sum of the four
// 16-bit halves of two words.
inline float normal_from(uint32_t a, uint32_t b) {
  const auto sum = static_cast<int32_t>((a & 0xFFFF) + (a >> 16) + (b & 0xFFFF) + (b >> 16));
  return static_cast<float>(sum - 131070) * 2.642914e-5F;  // 1 / (2 · 65536 / sqrt 12)
}

// Returns floor(x · n / 2^32): a uniform integer in [0, n) from a uniform word, for n < 2^32.
inline uint32_t pick(uint32_t x, int64_t n) { return static_cast<uint32_t>(x * static_cast<uint64_t>(n) >> 32); }

// A random permutation of [0, n) that needs no memory: a four-round Feistel network over the next
// even power of two, applied until the result is smaller than n.
class Shuffle {
 public:
  Shuffle(int64_t n, uint64_t key)
      : n_(static_cast<uint64_t>(n)),
        key_(key),
        half_bits_((std::bit_width(static_cast<uint64_t>(n > 1 ? n - 1 : 1)) + 1) / 2) {}

  int64_t operator()(int64_t i) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    auto x = static_cast<uint64_t>(i);
    do {
      uint64_t left = x >> half_bits_;
      uint64_t right = x & mask;
      for (uint64_t round = 0; round < 4; ++round) {
        const uint64_t next = left ^ (mix_key(key_ + round, right) & mask);
        left = right;
        right = next;
      }
      x = left << half_bits_ | right;
    } while (x >= n_);
    return static_cast<int64_t>(x);
  }

 private:
  uint64_t n_;
  uint64_t key_;
  int half_bits_;
};

}  // namespace nacre

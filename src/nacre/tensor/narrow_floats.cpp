#include "nacre/tensor/narrow_floats.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "nacre/base/bf16.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kChunk = 1 << 18;
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

float from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u;
  const uint32_t fraction = bits & 1023u;
  if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1.0p-24F, std::bit_cast<float>(sign));
  const uint32_t biased = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (biased << 23) | (fraction << 13));
}

uint16_t to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;   // the value is NaN
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;  // the value rounds to 65536 or more
  if (magnitude < 0x38800000u) {
    // Below 2^-14, f16 holds the multiples of 2^-24. Adding 0.5F rounds to one of them, because the
    // floats from 0.5 to 1 are multiples of 2^-24, too.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3F000000u);
  }
  const uint32_t rounded = magnitude - 0x38000000u + 0xFFFu + (magnitude >> 13 & 1u);
  return sign | static_cast<uint16_t>(rounded >> 13);
}

}  // namespace

float widen(DType type, uint16_t bits) { return type == DType::f16 ? from_half(bits) : from_bf16(bits); }

uint16_t narrow(DType type, float value) { return type == DType::f16 ? to_half(value) : to_bf16(value); }

void widen(DType type, const uint16_t* from, float* to, int64_t count) {
  if (type == DType::f16) {
    for (int64_t i = 0; i < count; ++i) to[i] = from_half(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
  }
}

int64_t narrow(DType type, const float* from, uint16_t* to, int64_t count) {
  std::atomic<int64_t> first{kNone};
  parallel_for(count, kChunk, [&](int64_t b, int64_t e) {
    int64_t bad = kNone;
    for (int64_t i = b; i < e; ++i) {
      to[i] = narrow(type, from[i]);
      if (bad == kNone && std::isfinite(from[i]) && !std::isfinite(widen(type, to[i]))) bad = i;
    }
    int64_t seen = first.load();
    while (bad < seen && !first.compare_exchange_weak(seen, bad)) {
    }
  });
  return first.load() == kNone ? -1 : first.load();
}

}  // namespace nacre

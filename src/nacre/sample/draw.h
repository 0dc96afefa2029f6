// The exact definition of all draws of the samplers. Code that follows this file draws the same
// sample on every device. It uses integers, and doubles whose +, -, * and / are rounded once each
// (they must not be contracted into fma). It calls no library function.
//
// Random words: w(stream, i), i = 0, 1, …, is word i mod 4 of
// philox(key, place, vertex · 2^32 + i div 4), where
//   key    = mix_key(mix_key(mix_key(seed, 0x73616D706C65), epoch), batch),
//   place  = channel · 2^32 + hop; channel is the edge type if every type has its own fan-out,
//            otherwise 0,
//   vertex = original id of the vertex that draws.
#pragma once

#include <cstdint>
#include <cstring>

#include "nacre/base/philox.h"

namespace nacre::draw {

inline uint64_t batch_key(uint64_t seed, uint64_t epoch, uint64_t batch) {
  return mix_key(mix_key(mix_key(seed, 0x73616D706C65), epoch), batch);
}

inline uint64_t place(uint32_t channel, uint32_t hop) { return uint64_t{channel} << 32 | hop; }

// Gives the random words of one vertex in one hop of one batch.
struct Stream {
  uint64_t key;
  uint64_t place;
  uint32_t vertex;

  PhiloxBlock four(uint32_t block) const { return philox(key, place, uint64_t{vertex} << 32 | block); }
};

// Returns a uniform number in [0, n), n ≤ 2^32. No value is likelier than another by more than
// n / 2^32.
inline uint32_t below(uint32_t word, uint64_t n) { return static_cast<uint32_t>((word * n) >> 32); }

// Returns a uniform number in (0, 1): 52 random bits and a half, so that neither end occurs.
inline double open_unit(uint32_t hi, uint32_t lo) {
  return (static_cast<double>((uint64_t{hi} << 32 | lo) >> 12) + 0.5) * 0x1.0p-52;
}

// Draws `count` numbers of [0, degree) with replacement: draw i is below(w(i), degree). The numbers
// are in the order of the draws, not sorted.
inline void with_replacement(const Stream& stream, uint32_t degree, uint32_t count, uint32_t* out) {
  for (uint32_t i = 0; i < count; i += 4) {
    const PhiloxBlock words = stream.four(i / 4);
    for (uint32_t k = 0; k < 4 && i + k < count; ++k) out[i + k] = below(words[k], degree);
  }
}

// Draws `count` < degree distinct numbers of [0, degree); every set is equally likely (Floyd's
// method). Draw i = 0, 1, … is t = below(w(i), top + 1) with top = degree - count + i, or top
// itself if t was drawn before. `seen(t, i)` returns whether t was drawn before, and remembers t if
// not. `out` is in the order of the draws.
template <class Seen>
void distinct(const Stream& stream, uint32_t degree, uint32_t count, uint32_t* out, Seen&& seen) {
  for (uint32_t i = 0; i < count; i += 4) {
    const PhiloxBlock words = stream.four(i / 4);
    for (uint32_t k = 0; k < 4 && i + k < count; ++k) {
      const uint32_t top = degree - count + i + k;
      const uint32_t t = below(words[k], uint64_t{top} + 1);
      out[i + k] = seen(t, i + k) ? top : t;
    }
  }
}

// Returns ln x for normal x > 0. With x = m · 2^e and m in [√½, √2),
// ln x = e ln 2 + 2 artanh((m - 1) / (m + 1)); the series is taken to the 21st power.
inline double natural_log(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, 8);
  int exponent = static_cast<int>(bits >> 52) - 1022;
  bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FE0000000000000ull;
  double m;
  std::memcpy(&m, &bits, 8);
  if (m < 0x1.6A09E667F3BCDp-1) {
    m = m * 2;
    exponent = exponent - 1;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double series = 1.0 / 21;
  for (int power = 19; power >= 1; power -= 2) series = series * z + 1.0 / power;
  return exponent * 0x1.62E42FEFA39EFp-1 + 2 * s * series;
}

// Returns 1 - e^-x for x ≥ 0, with x = n ln 2 + r, 0 ≤ r < ln 2, and Taylor's series in r to the
// 18th power.
inline double one_minus_exp(double x) {
  if (!(x < 40)) return 1;
  const int n = static_cast<int>(x * 0x1.71547652B82FEp+0);
  const double r = (x - n * 0x1.62E42FEE00000p-1) - n * 0x1.A39EF35793C76p-33;
  double series = 1;  // series of (1 - e^-r) / r
  for (int i = 18; i >= 2; --i) series = 1 - series * r / i;
  const double small = series * r;
  if (n == 0) return small;
  double scale = 1;
  for (int i = 0; i < n; ++i) scale = scale * 0.5;
  return 1 - scale * (1 - small);
}

// Weighted draws without replacement: candidate i of weight w > 0 has the key -ln(u) / w with u =
// open_unit(w(2i), w(2i+1)), an exponential variable of rate w. The `count` candidates with the
// least keys are taken; of equal keys the lower candidate's goes first. The chances are those of
// drawing one candidate after the other by weight. If t is the least key that is not taken, the
// scale of a taken candidate is 1 / (1 - e^(-w t)), one over its chance of a key below t. Scales
// are unbiased, and those of different candidates are uncorrelated.
inline double exponential_key(uint32_t hi, uint32_t lo, double weight) {
  return -natural_log(open_unit(hi, lo)) / weight;
}
inline float threshold_scale(double weight, double threshold) {
  return static_cast<float>(1 / one_minus_exp(weight * threshold));
}

// Weighted draws with replacement: draw i takes the first candidate whose running sum of weights
// (in double, from the first candidate on) exceeds u · total, where u = open_unit(w(2i), w(2i+1)).
// The scale of a draw is total / (count · weight).
inline uint32_t by_running_sum(const double* sums, uint32_t count, double unit) {
  const double mark = unit * sums[count - 1];
  uint32_t low = 0, high = count - 1;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (sums[middle] > mark) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace nacre::draw

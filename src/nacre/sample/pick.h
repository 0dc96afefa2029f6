// Picker: picks among a list of candidates by the definitions in draw.h. It keeps its memory
// between calls. Only files of this room include this header.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/sample/draw.h"

namespace nacre {

struct Pick {
  uint32_t index;  // number of the candidate
  float scale;
};

class Picker {
 public:
  // Return `count` of the n candidates (-1: all), sorted by index. With replacement, an index may
  // occur several times.
  std::span<const Pick> uniform(const draw::Stream& stream, uint32_t n, int count, bool replace);
  std::span<const Pick> weighted(const draw::Stream& stream, std::span<const double> weights, int count, bool replace);

  // Returns the candidates with the `count` least keys. `keys` belong to the candidates of positive
  // weight.
  std::span<const Pick> least(std::span<const double> keys, std::span<const double> weights, int count);

  // Returns the draws of weighted() with replacement. The draws of one candidate become one pick,
  // whose scale is the sum of their scales.
  std::span<const Pick> merged(const draw::Stream& stream, std::span<const double> weights, int count);

 private:
  std::span<const Pick> all(uint32_t n);
  std::span<const Pick> by_sums(const draw::Stream& stream, std::span<const double> weights, int count);
  std::vector<Pick> picks_;
  std::vector<uint32_t> order_;
  std::vector<double> keys_;
  std::vector<uint64_t> seen_;
};

// Draws `count` < n distinct numbers below n into `out`, ascending.
void distinct_sorted(const draw::Stream& stream, uint32_t n, uint32_t count, uint32_t* out,
                     std::vector<uint64_t>& seen);

}  // namespace nacre

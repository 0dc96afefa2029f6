// Picks among a list of candidates, as draw.h says; memory is kept between calls. Internal to the room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/sample/draw.h"

namespace nacre {

struct Pick {
  uint32_t index;  // of the candidate
  float scale;
};

class Picker {
 public:
  // `count` of n candidates; -1: all. Sorted by index; with replacement an index may come several times.
  std::span<const Pick> uniform(const draw::Stream& stream, uint32_t n, int count, bool replace);
  std::span<const Pick> weighted(const draw::Stream& stream, std::span<const double> weights, int count, bool replace);

  // The `count` least of `keys`, which belong to the candidates of positive weight.
  std::span<const Pick> least(std::span<const double> keys, std::span<const double> weights, int count);

  // For `weighted` with replacement: draws of each candidate, as one pick with their scales added up.
  std::span<const Pick> merged(const draw::Stream& stream, std::span<const double> weights, int count);

 private:
  std::span<const Pick> all(uint32_t n);
  std::span<const Pick> by_sums(const draw::Stream& stream, std::span<const double> weights, int count);
  std::vector<Pick> picks_;
  std::vector<uint32_t> order_;
  std::vector<double> keys_;
  std::vector<uint64_t> seen_;
};

// `count` < n distinct ones, ascending, into out.
void distinct_sorted(const draw::Stream& stream, uint32_t n, uint32_t count, uint32_t* out,
                     std::vector<uint64_t>& seen);

}  // namespace nacre

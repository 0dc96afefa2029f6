// Ratings: adds up weights by key, for one vertex at a time. This is a hash table with open
// addressing that remembers which places are in use, so that emptying it takes no longer than
// filling it did.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace nacre {

class Ratings {
 public:
  // Makes room for at most `keys` distinct keys. The table must be empty.
  void reserve(int64_t keys) {
    const auto size = std::bit_ceil(static_cast<uint64_t>(keys) * 2 + 2);
    if (size > places_.size()) places_.assign(size, Place{});
    // Only the first `size` places are used, even if the table is larger, so that they stay in the
    // cache.
    mask_ = static_cast<uint32_t>(size - 1);
  }
  void add(uint32_t key, uint64_t weight) {
    uint32_t at = (key * 0x9E3779B1u) >> 7 & mask_;
    while (places_[at].used && places_[at].key != key) at = (at + 1) & mask_;
    Place& place = places_[at];
    if (!place.used) {
      place = {key, true, 0};
      touched_.push_back(at);
    }
    place.weight += weight;
  }
  int64_t size() const { return static_cast<int64_t>(touched_.size()); }
  // Calls take(key, weight) for every key in the order of their first addition.
  template <class Take>
  void each(const Take& take) const {
    for (const uint32_t at : touched_) take(places_[at].key, places_[at].weight);
  }
  void clear() {
    for (const uint32_t at : touched_) places_[at].used = false;
    touched_.clear();
  }

 private:
  struct Place {
    uint32_t key = 0;
    bool used = false;
    uint64_t weight = 0;
  };
  std::vector<Place> places_;
  std::vector<uint32_t> touched_;
  uint32_t mask_ = 0;
};

}  // namespace nacre

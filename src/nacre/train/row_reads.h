// RowReads: counts how many feature rows batches have read, by where the rows lay.
#pragma once

#include <cstdint>
#include <string>

namespace nacre {

struct RowReads {
  int64_t batches = 0;
  int64_t local = 0;  // rows in the memory of the device that computed
  int64_t peer = 0;   // rows in the memory of another device
  int64_t host = 0;   // rows in host memory
  int64_t disk = 0;   // rows on disk

  int64_t total() const { return local + peer + host + disk; }
  RowReads& operator+=(const RowReads& other);
  RowReads operator-(const RowReads& other) const;
  // Returns the counts as a JSON object.
  std::string json() const;
};

}  // namespace nacre

// RowSpan: names a run of the rows that a kernel walks.
#pragma once

#include <cstdint>

namespace nacre {

// Rows [begin, end), or all rows if `end` is negative.
struct RowSpan {
  int64_t begin = 0;
  int64_t end = -1;

  bool all() const { return end < 0; }
  // Returns the same rows with their true end. `rows` is the number of all rows.
  RowSpan of(int64_t rows) const { return all() ? RowSpan{0, rows} : *this; }
  int64_t count() const { return end - begin; }
  friend bool operator==(const RowSpan&, const RowSpan&) = default;
};

}  // namespace nacre

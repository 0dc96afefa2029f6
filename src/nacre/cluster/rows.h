// Describes rows of bytes in memory, as ranks send and receive them: all rows of a range, or the
// rows that a list of numbers names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nacre {

// RowRange names rows. Byte is std::byte, or const std::byte for rows that are only read.
template <class Byte>
struct RowRange {
  Byte* data = nullptr;  // row 0 of the memory that the rows lie in
  int64_t count = 0;     // number of rows
  int64_t row_bytes = 0;
  int64_t pitch = 0;  // bytes from one row of the memory to the next; 0 means row_bytes
  // The list has the numbers of the `count` rows in the memory. If it is null, these are 0, 1, 2, …
  const uint32_t* index = nullptr;

  int64_t bytes() const { return count * row_bytes; }
  int64_t step() const { return pitch == 0 ? row_bytes : pitch; }
  // Returns whether the rows lie one directly behind the other.
  bool dense() const { return index == nullptr && step() == row_bytes; }
  // Returns the rows [begin, begin + rows) of this range as a range of their own.
  RowRange part(int64_t begin, int64_t rows) const {
    if (index != nullptr) return {data, rows, row_bytes, pitch, index + begin};
    return {data + begin * step(), rows, row_bytes, pitch, nullptr};
  }
  Byte* row(int64_t i) const { return data + (index == nullptr ? i : static_cast<int64_t>(index[i])) * step(); }
};
using Rows = RowRange<std::byte>;
using ConstRows = RowRange<const std::byte>;

// Copies the rows at positions [begin, end) of `from` to the same positions of `to`. The two must
// have rows of the same size and must not overlap.
void copy_rows(const ConstRows& from, const Rows& to, int64_t begin, int64_t end);

// pack_bytes() copies bytes [begin, end) of all rows to dense memory, and unpack_bytes() copies
// them back from there. Bytes are counted as if the rows lay one directly behind the other.
void pack_bytes(const ConstRows& from, int64_t begin, int64_t end, std::byte* to);
void unpack_bytes(const std::byte* from, const Rows& to, int64_t begin, int64_t end);

}  // namespace nacre

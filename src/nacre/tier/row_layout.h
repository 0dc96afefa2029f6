// RowLayout: says where the rows of a table lie in a file, and in which units the file is read.
#pragma once

#include <cstdint>

namespace nacre {

struct RowLayout {
  int64_t offset = 0;  // position of row 0 in the file
  int64_t row_bytes = 0;
  int64_t rows = 0;
  int64_t page = 4096;  // the file is read in pages of this many bytes

  int64_t begin(int64_t row) const { return offset + row * row_bytes; }
  int64_t end(int64_t row) const { return begin(row) + row_bytes; }
  // Return the pages that hold the first and the last byte of a row.
  int64_t first_page(int64_t row) const { return begin(row) / page; }
  int64_t last_page(int64_t row) const { return (end(row) - 1) / page; }
};

}  // namespace nacre

#include "nacre/cluster/rows.h"

#include <cstring>

namespace nacre {

void copy_rows(const ConstRows& from, const Rows& to, int64_t begin, int64_t end) {
  const int64_t bytes = from.row_bytes;
  if (bytes == 0 || begin >= end) return;
  if (from.dense() && to.dense()) {
    std::memcpy(to.row(begin), from.row(begin), static_cast<size_t>((end - begin) * bytes));
    return;
  }
  for (int64_t i = begin; i < end; ++i) std::memcpy(to.row(i), from.row(i), static_cast<size_t>(bytes));
}

}  // namespace nacre

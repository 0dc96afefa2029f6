#include "nacre/cluster/rows.h"

#include <algorithm>
#include <cstring>

namespace nacre {
namespace {

// Calls copy(bytes, count, position) for every run of bytes in [begin, end) of the rows that lie
// directly behind one another in memory: `bytes` points to the run, `count` is its number of bytes,
// and `position` is its distance from `begin`.
template <class Byte, class Copy>
void for_each_run(const RowRange<Byte>& rows, int64_t begin, int64_t end, const Copy& copy) {
  if (begin >= end) return;
  if (rows.dense()) return copy(rows.data + begin, end - begin, 0);
  int64_t row = begin / rows.row_bytes, skip = begin % rows.row_bytes;
  for (int64_t at = begin; at < end; ++row, skip = 0) {
    const int64_t run = std::min(rows.row_bytes - skip, end - at);
    copy(rows.row(row) + skip, run, at - begin);
    at += run;
  }
}

}  // namespace

void copy_rows(const ConstRows& from, const Rows& to, int64_t begin, int64_t end) {
  const int64_t bytes = from.row_bytes;
  if (bytes == 0 || begin >= end) return;
  if (from.dense() && to.dense()) {
    std::memcpy(to.row(begin), from.row(begin), static_cast<size_t>((end - begin) * bytes));
    return;
  }
  for (int64_t i = begin; i < end; ++i) std::memcpy(to.row(i), from.row(i), static_cast<size_t>(bytes));
}

void pack_bytes(const ConstRows& from, int64_t begin, int64_t end, std::byte* to) {
  for_each_run(from, begin, end, [&](const std::byte* bytes, int64_t run, int64_t at) {
    std::memcpy(to + at, bytes, static_cast<size_t>(run));
  });
}

void unpack_bytes(const std::byte* from, const Rows& to, int64_t begin, int64_t end) {
  for_each_run(to, begin, end, [&](std::byte* bytes, int64_t run, int64_t at) {
    std::memcpy(bytes, from + at, static_cast<size_t>(run));
  });
}

}  // namespace nacre

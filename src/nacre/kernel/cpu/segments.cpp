// Operations on runs of rows: copies, sums and maxima.
#include <algorithm>
#include <cstring>

#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/segments.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include "nacre/kernel/cpu/micro_ops.h"
#include "nacre/kernel/cpu/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

// ---- copies
template <size_t kWidth>
void copy_short_rows(const Rows& from, int64_t rows, float* out) {
  if (from.index == nullptr) {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(out + r * kWidth, from.row(r), kWidth * sizeof(float));
    return;
  }
  constexpr int64_t ahead = 32;
  for (int64_t r = 0; r < rows; ++r) {
    if (r + ahead < rows) __builtin_prefetch(from.base + int64_t{from.index[r + ahead]} * from.stride, 0, 3);
    std::memcpy(out + r * kWidth, from.base + int64_t{from.index[r]} * from.stride, kWidth * sizeof(float));
  }
}

void copy_rows(const Rows& from, int64_t rows, float* out) {
  const int64_t width = from.width;
  const auto same = [](FloatVec v) HWY_ATTR { return v; };
  if (from.packed()) return apply1(from.base, out, rows * width, same);
  switch (width) {
    case 1:
      return copy_short_rows<1>(from, rows, out);
    case 2:
      return copy_short_rows<2>(from, rows, out);
    case 4:
      return copy_short_rows<4>(from, rows, out);
    case 8:
      return copy_short_rows<8>(from, rows, out);
    default:
      break;
  }
  const RowPrefetch fetch_from(from, rows);
  for (int64_t r = 0; r < rows; ++r) {
    fetch_from(r);
    apply1(from.row(r), out + r * width, width, same);
  }
}

void scatter_rows(const Rows& from, int64_t rows, const uint32_t* to, float* out) {
  const int64_t width = from.width;
  for (int64_t r = 0; r < rows; ++r) {
    apply1(from.row(r), out + int64_t{to[r]} * width, width, [](FloatVec v) HWY_ATTR { return v; });
  }
}

// ---- sums: a strip of columns stays in registers while the loop passes over the rows; the first
// strip fetches whole rows ahead
constexpr int kStripVecs = HWY_TARGET <= HWY_AVX3 ? 16 : 8;

template <int kVecs>
HWY_INLINE void add_strip(const RowSegment& s, const RowPrefetch& fetch, int64_t column) {
  const Floats d;
  FloatVec sum[kVecs];
  for (int v = 0; v < kVecs; ++v) sum[v] = s.fresh ? hn::Zero(d) : hn::LoadU(d, s.sum + column + v * kLanes);
  for (int64_t r = s.begin; r < s.end; ++r) {
    if (column == 0) fetch(r);
    const float* row = s.value->row(r) + column;
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(d, row + v * kLanes));
  }
  for (int v = 0; v < kVecs; ++v) hn::StoreU(sum[v], d, s.sum + column + v * kLanes);
}

void segment_add(const RowSegment& s) {
  const int64_t width = s.value->width;
  const RowPrefetch fetch(*s.value, s.fetch_end);
  int64_t c = 0;
  for (; c + kStripVecs * kLanes <= width; c += kStripVecs * kLanes) add_strip<kStripVecs>(s, fetch, c);
  for (; c + 4 * kLanes <= width; c += 4 * kLanes) add_strip<4>(s, fetch, c);
  for (; c + kLanes <= width; c += kLanes) add_strip<1>(s, fetch, c);
  if (c == width) return;
  const int64_t part = width - c;
  auto sum = s.fresh ? hn::Zero(Floats()) : load_part(s.sum + c, part);
  for (int64_t r = s.begin; r < s.end; ++r) sum = hn::Add(sum, load_part(s.value->row(r) + c, part));
  store_part(sum, s.sum + c, part);
}

// ---- maxima: the first row with the maximum wins, so only a greater value replaces it
HWY_INLINE int32_t position_of(const RowSegment& s, int64_t r) {
  return static_cast<int32_t>(s.position != nullptr ? s.position[r] : s.first_position + r);
}

HWY_INLINE hn::Vec<hn::RebindToSigned<Floats>> load_argmax(const int32_t* from, int64_t part) {
  const hn::RebindToSigned<Floats> i;
  if (part >= kLanes) return hn::LoadU(i, from);
  HWY_ALIGN int32_t lanes[kLanes] = {};
  std::memcpy(lanes, from, static_cast<size_t>(part) * sizeof(int32_t));
  return hn::Load(i, lanes);
}

void segment_max(const RowSegment& s) {
  const hn::RebindToSigned<Floats> i;
  const RowPrefetch fetch(*s.value, s.fetch_end);
  for (int64_t c = 0; c < s.value->width; c += kLanes) {
    const int64_t part = std::min(kLanes, s.value->width - c);
    int64_t r = s.begin;
    auto best = load_lanes(s.fresh ? s.value->row(r) + c : s.sum + c, part);
    auto where = hn::Set(i, s.fresh ? position_of(s, r) : 0);
    if (!s.fresh && s.argmax != nullptr) where = load_argmax(s.argmax + c, part);
    if (c == 0) fetch(r);
    for (r += s.fresh ? 1 : 0; r < s.end; ++r) {
      if (c == 0) fetch(r);
      const auto v = load_lanes(s.value->row(r) + c, part);
      const auto greater = hn::Gt(v, best);
      best = hn::IfThenElse(greater, v, best);
      where = hn::IfThenElse(hn::RebindMask(i, greater), hn::Set(i, position_of(s, r)), where);
    }
    store_lanes(best, s.sum + c, part);
    if (s.argmax == nullptr) continue;
    HWY_ALIGN int32_t lanes[kLanes];
    hn::Store(where, i, lanes);
    std::memcpy(s.argmax + c, lanes, static_cast<size_t>(part) * sizeof(int32_t));
  }
}

void scale_row(float* row, int64_t width, float factor) {
  const auto f = hn::Set(Floats(), factor);
  apply1(row, row, width, [&](FloatVec v) HWY_ATTR { return hn::Mul(v, f); });
}

}  // namespace

const SegmentFunctions* segments_of_target() {
  static const SegmentFunctions set = {copy_rows, scatter_rows, segment_add, segment_max, scale_row};
  return &set;
}

}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {
HWY_EXPORT(segments_of_target);

const SegmentFunctions& segment_functions() {
  static const SegmentFunctions& chosen = *HWY_DYNAMIC_DISPATCH(segments_of_target)();
  return chosen;
}

}  // namespace nacre::cpu
#endif

#include "nacre/kernel/cpu/gather_rows.h"

#include <algorithm>

#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/gather_rows.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// Number of entries that are summed in registers before the sum is written to the row of the tile.
// The rows of so few entries stay in the first-level cache while one strip of columns after the
// other is summed.
constexpr int64_t kPiece = 32;
// Number of bytes fetched ahead from memory, enough to cover the memory's latency.
constexpr int64_t kFlightBytes = 16384;
constexpr int64_t kLineFloats = 16;

int64_t prefetch_distance(int64_t width) {
  return std::clamp<int64_t>(kFlightBytes / (width * static_cast<int64_t>(sizeof(float))), 1, 32);
}

// Fetches into the second-level cache, which can have more misses in flight than the first-level
// cache; the number of misses in flight limits random gathers.
HWY_INLINE void prefetch(const float* p) { __builtin_prefetch(p, 0, 2); }

HWY_INLINE void prefetch_row(const float* row, int64_t width) {
  for (int64_t c = 0; c < width; c += kLineFloats) prefetch(row + c);
  prefetch(row + width - 1);
}

// The entries of one piece of a sum, and where their rows are.
struct Piece {
  const NodeId* col;
  const EdgeId* edge_id;
  const float* scale;
  int64_t count;
  const float* x;
  int64_t width;
  float* out;
  bool add;  // out += sum instead of out = sum

  const float* row(int64_t e) const { return x + static_cast<int64_t>(col[e]) * width; }
};

// Sums the columns from `column` on that fill kVecs vectors, in registers, and writes or adds the
// sums to the output.
template <int kVecs, bool kScaled, class D>
HWY_INLINE void sum_strip(D d, const Piece& piece, int64_t column) {
  constexpr int64_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> sum[kVecs];
  for (int v = 0; v < kVecs; ++v) sum[v] = hn::Zero(d);
  for (int64_t e = 0; e < piece.count; ++e) {
    const float* row = piece.row(e) + column;
    if constexpr (kScaled) {
      const auto scale = hn::Set(d, piece.scale[piece.edge_id[e]]);
      for (int v = 0; v < kVecs; ++v) sum[v] = hn::MulAdd(scale, hn::LoadU(d, row + v * kLanes), sum[v]);
    } else {
      for (int v = 0; v < kVecs; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(d, row + v * kLanes));
    }
  }
  float* out = piece.out + column;
  for (int v = 0; v < kVecs; ++v) {
    hn::StoreU(piece.add ? hn::Add(hn::LoadU(d, out + v * kLanes), sum[v]) : sum[v], d, out + v * kLanes);
  }
}

// Strips of many vectors read rows line after line, which suits the hardware prefetcher. 16 vectors
// fit only the registers of AVX-512.
constexpr int kStripVecs = hn::MaxLanes(Full()) >= 16 ? 16 : 8;

template <bool kScaled>
void sum_piece(const Piece& piece) {
  const Full d;
  constexpr int64_t kLanes = hn::MaxLanes(Full());
  int64_t c = 0;
  for (; c + kStripVecs * kLanes <= piece.width; c += kStripVecs * kLanes) sum_strip<kStripVecs, kScaled>(d, piece, c);
  for (; c + 4 * kLanes <= piece.width; c += 4 * kLanes) sum_strip<4, kScaled>(d, piece, c);
  for (; c + kLanes <= piece.width; c += kLanes) sum_strip<1, kScaled>(d, piece, c);
  for (; c < piece.width; ++c) sum_strip<1, kScaled>(One(), piece, c);
}

// Fetches rows of the entries [begin, end). The function must be inlined: GCC assumes that a
// function that only prefetches has no effect and drops calls to it.
HWY_INLINE void prefetch_entries(const RowSums& sums, int64_t begin, int64_t end, const float* x, int64_t width) {
  end = std::min(end, sums.entries);
  for (int64_t e = begin; e < end; ++e) {
    prefetch_row(x + static_cast<int64_t>(sums.col[e]) * width, width);
    if (sums.scale != nullptr) prefetch(sums.scale + sums.edge_id[e]);
  }
}

// NOLINTNEXTLINE(readability-non-const-parameter): out is written through Piece
void sum_row(const RowSums& sums, int64_t i, const float* x, int64_t width, float* out, bool add) {
  const int64_t distance = prefetch_distance(width);
  int64_t e = sums.ptr[i];
  const int64_t last = sums.ptr[i + 1];
  do {
    const int64_t count = std::min(kPiece, last - e);
    prefetch_entries(sums, e + distance, e + distance + count, x, width);
    const EdgeId* edge_id = sums.edge_id == nullptr ? nullptr : sums.edge_id + e;
    const Piece piece = {sums.col + e, edge_id, sums.scale, count, x, width, out, add};
    sums.scale != nullptr ? sum_piece<true>(piece) : sum_piece<false>(piece);
    e += count;
    add = true;
  } while (e < last);
}

void gather_sum_impl(const RowSums& sums, int64_t begin, int64_t end, const float* x, int64_t width, float* out) {
  for (int64_t i = begin; i < end; ++i) sum_row(sums, i, x, width, out + (i - begin) * width, false);
}

void gather_sum_add_impl(const RowSumsInto& into, int64_t begin, int64_t end, const float* x, int64_t width,
                         float* out) {
  for (int64_t i = begin; i < end; ++i) {
    if (i + 1 < end) prefetch_row(out + static_cast<int64_t>(into.rows[i + 1]) * width, width);
    sum_row(into.sums, i, x, width, out + static_cast<int64_t>(into.rows[i]) * width, true);
  }
}

void gather_copy_impl(const RowList& list, const float* x, int64_t width, float* out) {
  const Full d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t distance = prefetch_distance(width);
  for (int64_t i = 0; i < list.count; ++i, out += width) {
    if (i + distance < list.count + list.ahead) {
      prefetch_row(x + static_cast<int64_t>(list.rows[i + distance]) * width, width);
    }
    const float* row = x + static_cast<int64_t>(list.rows[i]) * width;
    int64_t c = 0;
    for (; c + lanes <= width; c += lanes) hn::StoreU(hn::LoadU(d, row + c), d, out + c);
    for (; c < width; ++c) out[c] = row[c];
  }
}

void scatter_add_impl(const RowList& list, const float* tile, int64_t width, float* out) {
  const Full d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < list.count; ++i, tile += width) {
    float* row = out + static_cast<int64_t>(list.rows[i]) * width;
    int64_t c = 0;
    for (; c + lanes <= width; c += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, row + c), hn::LoadU(d, tile + c)), d, row + c);
    }
    for (; c < width; ++c) row[c] += tile[c];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {

HWY_EXPORT(gather_sum_impl);
HWY_EXPORT(gather_sum_add_impl);
HWY_EXPORT(gather_copy_impl);
HWY_EXPORT(scatter_add_impl);

void gather_sum(const RowSums& sums, int64_t begin, int64_t end, const float* x, int64_t width, float* out) {
  if (width > 0) HWY_DYNAMIC_DISPATCH(gather_sum_impl)(sums, begin, end, x, width, out);
}

void gather_sum_add(const RowSumsInto& into, int64_t begin, int64_t end, const float* x, int64_t width, float* out) {
  if (width > 0) HWY_DYNAMIC_DISPATCH(gather_sum_add_impl)(into, begin, end, x, width, out);
}

void gather_copy(const RowList& list, const float* x, int64_t width, float* out) {
  if (width > 0) HWY_DYNAMIC_DISPATCH(gather_copy_impl)(list, x, width, out);
}

void scatter_add(const RowList& list, const float* tile, int64_t width, float* out) {
  if (width > 0) HWY_DYNAMIC_DISPATCH(scatter_add_impl)(list, tile, width, out);
}

}  // namespace nacre::cpu
#endif  // HWY_ONCE

// Sums of gathered rows. The rows of x come from memory in random order, about a kilobyte each, so
// the loop must above all keep enough of them in flight: every line of the row a few entries ahead
// is fetched early. A row of up to kMaxVecs vectors is summed in registers. Wider rows, and rows
// whose heads do not fill whole vectors, are summed in the output row, which stays in the
// first-level cache.
#include "nacre/kernel/cpu/spmm_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/spmm_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "nacre/kernel/cpu/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

// Number of accumulators that leaves enough registers for the operands.
constexpr int kMaxVecs = HWY_TARGET <= HWY_AVX3 ? 16 : 8;

// Fetches the entries of a chunk ahead of their use. Rows are kVecs vectors wide or a little less.
template <int kVecs, bool kWeighted>
class Fetcher {
 public:
  explicit Fetcher(const SpmmRows& s)
      : s_(s), ahead_(rows_ahead(s.width * static_cast<int64_t>(sizeof(float)))), weights_(s.edge_id != nullptr) {
    const int64_t end = std::min(s.row_ptr[0] + ahead_, s.fetch_end);
    for (int64_t e = s.row_ptr[0]; e < end; ++e) fetch(e);
  }
  HWY_INLINE void ahead_of(int64_t e) const {
    if (e + ahead_ < s_.fetch_end) fetch(e + ahead_);
  }

 private:
  HWY_INLINE void fetch(int64_t e) const {
    constexpr int line = 64 / sizeof(float);
    const float* row = s_.x + int64_t{s_.col[e]} * s_.width;
#pragma GCC unroll 16
    for (int i = 0; i < kVecs * kLanes; i += line) __builtin_prefetch(row + i, 0, 2);
    __builtin_prefetch(row + s_.width - 1, 0, 2);
    if (kWeighted && weights_) __builtin_prefetch(s_.weight + int64_t{s_.edge_id[e]} * s_.heads, 0, 2);
  }

  const SpmmRows& s_;
  int64_t ahead_;
  bool weights_;
};

HWY_INLINE const float* weights_of(const SpmmRows& s, int64_t e) {
  return s.weight + (s.edge_id != nullptr ? int64_t{s.edge_id[e]} : e) * s.heads;
}

HWY_INLINE float mean_factor(const SpmmRows& s, int64_t r) {
  const int64_t length = s.row_ptr[r + 1] - s.row_ptr[r];
  return s.mean && length > 0 ? 1.0f / static_cast<float>(length) : 1.0f;
}

// Says how vectors get their weights: kUnweighted, kOneWeight, or a number n > 0 if every n vectors
// are one head with a weight of its own.
constexpr int kUnweighted = 0, kOneWeight = -1;

// Sums rows of kVecs vectors, of which the last may be partial. Heads, if there are any, cover
// whole vectors.
template <int kVecs, int kHeadVecs>
void sum_in_registers(const SpmmRows& s) {
  const Floats d;
  const Fetcher<kVecs, kHeadVecs != kUnweighted> fetcher(s);
  const int64_t last = s.width - (kVecs - 1) * kLanes;  // number of valid lanes of the last vector
  const bool stream = s.stream && last == kLanes && reinterpret_cast<uintptr_t>(s.out) % (kLanes * sizeof(float)) == 0;
  for (int64_t r = 0; r < s.rows; ++r) {
    FloatVec sum[kVecs];
    for (int v = 0; v < kVecs; ++v) sum[v] = hn::Zero(d);
    for (int64_t e = s.row_ptr[r]; e < s.row_ptr[r + 1]; ++e) {
      fetcher.ahead_of(e);
      const float* row = s.x + int64_t{s.col[e]} * s.width;
      const float* w = kHeadVecs == kUnweighted ? nullptr : weights_of(s, e);
      auto factor = kHeadVecs == kUnweighted ? hn::Zero(d) : hn::Set(d, *w);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) {
        const auto x = v + 1 < kVecs ? hn::LoadU(d, row + v * kLanes) : load_lanes(row + v * kLanes, last);
        if constexpr (kHeadVecs == kUnweighted) {
          sum[v] = hn::Add(sum[v], x);
        } else {
          if (kHeadVecs > 0 && v > 0 && v % std::max(1, kHeadVecs) == 0) factor = hn::Set(d, *++w);
          sum[v] = hn::MulAdd(factor, x, sum[v]);
        }
      }
    }
    const auto factor = hn::Set(d, mean_factor(s, r));
    float* out = s.out + r * s.width;
    for (int v = 0; v < kVecs; ++v) {
      const auto y = hn::Mul(sum[v], factor);
      if (stream) {
        hn::Stream(y, d, out + v * kLanes);
      } else if (v + 1 < kVecs) {
        hn::StoreU(y, d, out + v * kLanes);
      } else {
        store_lanes(y, out + v * kLanes, last);
      }
    }
  }
}

// ---- any width and any heads
constexpr int64_t kGroupEntries = 32;

struct Strip {
  int64_t begin = 0, end = 0;  // range of entries
  int64_t column = 0, columns = 0;
  int64_t head = 0;
  int64_t ahead = 0;
  float* sum = nullptr;
  bool fresh = true;  // whether `sum` holds nothing yet
};

template <int kVecs>
void add_strip(const SpmmRows& s, const Strip& strip) {
  const Floats d;
  const int64_t last = strip.columns - (kVecs - 1) * kLanes;
  FloatVec sum[kVecs];
  for (int v = 0; v + 1 < kVecs; ++v) sum[v] = strip.fresh ? hn::Zero(d) : hn::LoadU(d, strip.sum + v * kLanes);
  sum[kVecs - 1] = strip.fresh ? hn::Zero(d) : load_lanes(strip.sum + (kVecs - 1) * kLanes, last);
  const float* x = s.x + strip.column;
  for (int64_t e = strip.begin; e < strip.end; ++e) {
    if (e + strip.ahead < s.fetch_end) {
      prefetch_row(x + int64_t{s.col[e + strip.ahead]} * s.width, strip.columns * static_cast<int64_t>(sizeof(float)));
    }
    const float* row = x + int64_t{s.col[e]} * s.width;
    const auto factor = hn::Set(d, s.weight == nullptr ? 1.0f : weights_of(s, e)[strip.head]);
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
      const auto value = v + 1 < kVecs ? hn::LoadU(d, row + v * kLanes) : load_lanes(row + v * kLanes, last);
      sum[v] = hn::MulAdd(factor, value, sum[v]);
    }
  }
  for (int v = 0; v + 1 < kVecs; ++v) hn::StoreU(sum[v], d, strip.sum + v * kLanes);
  store_lanes(sum[kVecs - 1], strip.sum + (kVecs - 1) * kLanes, last);
}

using StripFunction = void (*)(const SpmmRows&, const Strip&);

template <size_t... kIndex>
constexpr std::array<StripFunction, kMaxVecs> strips_by_vectors(std::index_sequence<kIndex...>) {
  return {add_strip<static_cast<int>(kIndex) + 1>...};
}

// Adds all columns of the entries of `group`, which gives begin, end, sum and fresh.
void add_group(const SpmmRows& s, const Strip& group) {
  static constexpr auto functions = strips_by_vectors(std::make_index_sequence<kMaxVecs>());
  const int64_t heads = s.weight == nullptr ? 1 : s.heads, head_width = s.width / heads;
  const int64_t most = kMaxVecs * kLanes;
  Strip strip = group;
  strip.ahead = rows_ahead(std::min(s.width, most) * static_cast<int64_t>(sizeof(float)));
  for (strip.head = 0; strip.head < heads; ++strip.head) {
    for (int64_t c = 0; c < head_width; c += most) {
      strip.column = strip.head * head_width + c;
      strip.columns = std::min(most, head_width - c);
      strip.sum = group.sum + strip.column;
      functions[(strip.columns + kLanes - 1) / kLanes - 1](s, strip);
    }
  }
}

void sum_in_strips(const SpmmRows& s) {
  const Floats d;
  for (int64_t r = 0; r < s.rows; ++r) {
    float* out = s.out + r * s.width;
    const int64_t first = s.row_ptr[r], last = s.row_ptr[r + 1];
    if (first == last) std::fill(out, out + s.width, 0.0f);
    for (int64_t e = first; e < last; e += kGroupEntries) {
      Strip group;
      group.begin = e;
      group.end = std::min(last, e + kGroupEntries);
      group.sum = out;
      group.fresh = e == first;
      add_group(s, group);
    }
    if (s.mean) {
      const auto factor = hn::Set(d, mean_factor(s, r));
      apply1(out, out, s.width, [&](FloatVec v) HWY_ATTR { return hn::Mul(v, factor); });
    }
  }
}

// ---- choosing the function
using RowsFunction = void (*)(const SpmmRows&);

// Returns the function for these numbers; null if kHeadVecs does not divide the number of vectors.
template <int kVecs, int kHeadVecs>
constexpr RowsFunction register_function() {
  if constexpr (kHeadVecs <= 0 || kVecs % std::max(1, kHeadVecs) == 0) {
    return sum_in_registers<kVecs, kHeadVecs>;
  } else {
    return nullptr;
  }
}

template <int kHeadVecs, size_t... kIndex>
constexpr std::array<RowsFunction, kMaxVecs> by_vectors(std::index_sequence<kIndex...>) {
  return {register_function<static_cast<int>(kIndex) + 1, kHeadVecs>()...};
}

template <int kHeadVecs>
RowsFunction in_registers(int64_t vecs) {
  static constexpr auto table = by_vectors<kHeadVecs>(std::make_index_sequence<kMaxVecs>());
  return table[vecs - 1];
}

RowsFunction choose(const SpmmRows& s) {
  const int64_t vecs = (s.width + kLanes - 1) / kLanes;
  if (vecs > kMaxVecs) return sum_in_strips;
  if (s.weight == nullptr) return in_registers<kUnweighted>(vecs);
  if (s.heads == 1) return in_registers<kOneWeight>(vecs);
  if (s.width / s.heads % kLanes != 0) return sum_in_strips;
  switch (s.width / s.heads / kLanes) {
    case 1:
      return in_registers<1>(vecs);
    case 2:
      return in_registers<2>(vecs);
    case 4:
      return in_registers<4>(vecs);
    case 8:
      return in_registers<8>(vecs);
    default:
      return sum_in_strips;
  }
}

void dots_of_row(const SpmmRows& s, int64_t r, const float* own, float* dots) {
  const int64_t size = s.width / s.heads;
  for (int64_t e = s.row_ptr[r]; e < s.row_ptr[r + 1]; ++e) {
    const float* row = s.x + int64_t{s.col[e]} * s.width;
    float* out = dots + (s.edge_id != nullptr ? int64_t{s.edge_id[e]} : e) * s.heads;
    for (int64_t h = 0; h < s.heads; ++h) {
      out[h] = sum_vectors(size, [&](int64_t i, int64_t part) HWY_ATTR {
        return hn::Mul(load_lanes(row + h * size + i, part), load_lanes(own + h * size + i, part));
      });
    }
  }
}

}  // namespace

void dot_rows_of_target(const SpmmRows& s, const float* own, float* dots) {
  for (int64_t r = 0; r < s.rows; ++r) dots_of_row(s, r, own + r * s.width, dots);
}

void spmm_rows_of_target(const SpmmRows& s) {
  choose(s)(s);
  if (s.stream) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {
HWY_EXPORT(spmm_rows_of_target);

HWY_EXPORT(dot_rows_of_target);

void spmm_rows(const SpmmRows& rows) { HWY_DYNAMIC_DISPATCH(spmm_rows_of_target)(rows); }

void dot_rows(const SpmmRows& rows, const float* own, float* dots) {
  HWY_DYNAMIC_DISPATCH(dot_rows_of_target)(rows, own, dots);
}

}  // namespace nacre::cpu
#endif

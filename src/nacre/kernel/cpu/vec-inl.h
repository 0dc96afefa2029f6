// Vector helpers shared by the row kernels, compiled once for each instruction set (this file is
// included by foreach_target).
#if defined(NACRE_KERNEL_CPU_VEC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NACRE_KERNEL_CPU_VEC_INL_H
#undef NACRE_KERNEL_CPU_VEC_INL_H
#else
#define NACRE_KERNEL_CPU_VEC_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "nacre/kernel/cpu/micro_ops.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatVec = hn::Vec<Floats>;
inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));

// Loads the first n (< kLanes) elements and puts 0 in the other lanes. Touches no byte beyond the
// elements.
HWY_INLINE FloatVec load_part(const float* from, int64_t n) {
  const Floats d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, from);
#endif
}

HWY_INLINE void store_part(FloatVec v, float* to, int64_t n) {
  const Floats d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < n; ++i) to[i] = lanes[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, to);
#endif
}

// Computes out[i] = f(a[i]); out may be a.
template <class F>
HWY_INLINE void apply1(const float* a, float* out, int64_t n, const F& f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(f(hn::LoadU(d, a + i)), d, out + i);
  if (i < n) store_part(f(load_part(a + i, n - i)), out + i, n - i);
}

// Computes out[i] = f(a[i], b[i]); out may be a or b.
template <class F>
HWY_INLINE void apply2(const float* a, const float* b, float* out, int64_t n, const F& f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(f(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  if (i < n) store_part(f(load_part(a + i, n - i), load_part(b + i, n - i)), out + i, n - i);
}

// Returns Σ f(i, part) over the vectors of n elements; i is the first element of a vector, and
// `part` is the number of its valid lanes. f must be 0 in the other lanes. Four sums are added to
// in turn, which hides the latency of the additions.
template <class F>
HWY_INLINE float sum_vectors(int64_t n, const F& f) {
  const Floats d;
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    s0 = hn::Add(s0, f(i, kLanes));
    s1 = hn::Add(s1, f(i + kLanes, kLanes));
    s2 = hn::Add(s2, f(i + 2 * kLanes, kLanes));
    s3 = hn::Add(s3, f(i + 3 * kLanes, kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) s0 = hn::Add(s0, f(i, kLanes));
  if (i < n) s1 = hn::Add(s1, f(i, n - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

HWY_INLINE FloatVec load_lanes(const float* from, int64_t n) {
  return n >= kLanes ? hn::LoadU(Floats(), from) : load_part(from, n);
}

HWY_INLINE void store_lanes(FloatVec v, float* to, int64_t n) {
  if (n >= kLanes) {
    hn::StoreU(v, Floats(), to);
  } else {
    store_part(v, to, n);
  }
}

// Fetches a row of `bytes` bytes into the second-level cache, which can have several times more
// lines in flight than the first-level cache (measured on Zen 4: random rows of 1 KiB are read at
// 20 instead of 10 GB/s per core).
HWY_INLINE void prefetch_row(const void* row, int64_t bytes) {
  const char* p = static_cast<const char*>(row);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
  __builtin_prefetch(p + bytes - 1, 0, 2);  // a row need not start at the border of a cache line
}

// Returns how many gathered rows of `bytes` bytes to fetch ahead: enough bytes in flight for the
// latency times the bandwidth of the memory.
HWY_INLINE int64_t rows_ahead(int64_t bytes) {
  constexpr int64_t in_flight = 8192, most = 64;
  return bytes >= in_flight / 4 ? 4 : bytes <= in_flight / most ? most : in_flight / bytes;
}

// While a loop walks over gathered rows, fetches the row some distance ahead of row r.
class RowPrefetch {
 public:
  HWY_INLINE RowPrefetch(const Rows& rows, int64_t end)
      : rows_(rows), bytes_(rows.width * static_cast<int64_t>(sizeof(float))) {
    ahead_ = rows_ahead(bytes_);
    end_ = rows.index == nullptr ? 0 : end;
  }
  HWY_INLINE void operator()(int64_t r) const {
    if (r + ahead_ < end_) prefetch_row(rows_.row(r + ahead_), bytes_);
  }

 private:
  const Rows& rows_;
  int64_t bytes_, ahead_, end_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#endif

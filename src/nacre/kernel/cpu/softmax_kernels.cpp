// The values of a row are one run of length · heads floats. If heads divides the number of lanes of
// a vector, lane i always belongs to head i % heads, so whole vectors are combined. Otherwise sums
// and maxima are computed head by head.
#include "nacre/kernel/cpu/softmax_kernels.h"

#include <algorithm>
#include <limits>

#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/softmax_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "nacre/kernel/cpu/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

// Combines the lanes of the same head; every lane gets the result of its head.
class HeadFold {
 public:
  explicit HeadFold(int64_t heads) {
    for (int64_t shift = heads; shift < kLanes; shift *= 2) {
      HWY_ALIGN int32_t lanes[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) lanes[i] = static_cast<int32_t>((i + shift) % kLanes);
      std::copy_n(lanes, kLanes, rotations_[num_rotations_++]);
    }
  }
  template <class F>
  HWY_INLINE FloatVec fold(FloatVec v, const F& f) const {
    for (int i = 0; i < num_rotations_; ++i) {
      v = f(v, hn::TableLookupLanes(v, hn::SetTableIndices(Floats(), rotations_[i])));
    }
    return v;
  }

 private:
  HWY_ALIGN int32_t rotations_[5][kLanes];
  int num_rotations_ = 0;
};

HWY_INLINE FloatVec max_of(FloatVec a, FloatVec b) { return hn::Max(a, b); }
HWY_INLINE FloatVec sum_of(FloatVec a, FloatVec b) { return hn::Add(a, b); }

HWY_INLINE FloatVec live_or(FloatVec v, int64_t part, FloatVec other) {
  return part >= kLanes ? v : hn::IfThenElse(hn::FirstN(Floats(), static_cast<size_t>(part)), v, other);
}

void softmax_folded(const SoftmaxRows& s) {
  const Floats d;
  const HeadFold heads(s.heads);
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < s.rows; ++r) {
    float* x = s.values + s.row_ptr[r] * s.heads;
    const int64_t n = (s.row_ptr[r + 1] - s.row_ptr[r]) * s.heads;
    if (n == 0) continue;
    auto top = lowest;
    for (int64_t i = 0; i < n; i += kLanes) top = hn::Max(top, live_or(load_lanes(x + i, n - i), n - i, lowest));
    top = heads.fold(top, [](FloatVec a, FloatVec b) HWY_ATTR { return max_of(a, b); });
    auto sum = hn::Zero(d);
    for (int64_t i = 0; i < n; i += kLanes) {
      const auto e = live_or(hn::Exp(d, hn::Sub(load_lanes(x + i, n - i), top)), n - i, hn::Zero(d));
      store_lanes(e, x + i, n - i);
      sum = hn::Add(sum, e);
    }
    sum = heads.fold(sum, [](FloatVec a, FloatVec b) HWY_ATTR { return sum_of(a, b); });
    const auto factor = hn::Div(hn::Set(d, 1.0f), sum);
    apply1(x, x, n, [&](FloatVec v) HWY_ATTR { return hn::Mul(v, factor); });
  }
}

void softmax_by_head(const SoftmaxRows& s) {
  float* top = s.spare;
  float* sum = s.spare + s.heads;
  for (int64_t r = 0; r < s.rows; ++r) {
    float* x = s.values + s.row_ptr[r] * s.heads;
    const int64_t length = s.row_ptr[r + 1] - s.row_ptr[r];
    if (length == 0) continue;
    std::copy_n(x, s.heads, top);
    for (int64_t e = 1; e < length; ++e) {
      for (int64_t h = 0; h < s.heads; ++h) top[h] = std::max(top[h], x[e * s.heads + h]);
    }
    for (int64_t e = 0; e < length; ++e) {
      for (int64_t h = 0; h < s.heads; ++h) x[e * s.heads + h] -= top[h];
    }
    apply1(x, x, length * s.heads, [](FloatVec v) HWY_ATTR { return hn::Exp(Floats(), v); });
    std::fill_n(sum, s.heads, 0.0f);
    for (int64_t e = 0; e < length; ++e) {
      for (int64_t h = 0; h < s.heads; ++h) sum[h] += x[e * s.heads + h];
    }
    for (int64_t h = 0; h < s.heads; ++h) sum[h] = 1.0f / sum[h];
    for (int64_t e = 0; e < length; ++e) {
      for (int64_t h = 0; h < s.heads; ++h) x[e * s.heads + h] *= sum[h];
    }
  }
}

void grad_folded(const SoftmaxRows& s) {
  const Floats d;
  const HeadFold heads(s.heads);
  for (int64_t r = 0; r < s.rows; ++r) {
    float* g = s.values + s.row_ptr[r] * s.heads;
    const float* y = s.y + s.row_ptr[r] * s.heads;
    const int64_t n = (s.row_ptr[r + 1] - s.row_ptr[r]) * s.heads;
    auto sum = hn::Zero(d);
    for (int64_t i = 0; i < n; i += kLanes) {
      sum = hn::MulAdd(load_lanes(g + i, n - i), load_lanes(y + i, n - i), sum);
    }
    sum = heads.fold(sum, [](FloatVec a, FloatVec b) HWY_ATTR { return sum_of(a, b); });
    apply2(g, y, g, n, [&](FloatVec gv, FloatVec yv) HWY_ATTR { return hn::Mul(yv, hn::Sub(gv, sum)); });
  }
}

void grad_by_head(const SoftmaxRows& s) {
  float* sum = s.spare;
  for (int64_t r = 0; r < s.rows; ++r) {
    float* g = s.values + s.row_ptr[r] * s.heads;
    const float* y = s.y + s.row_ptr[r] * s.heads;
    const int64_t length = s.row_ptr[r + 1] - s.row_ptr[r];
    std::fill_n(sum, s.heads, 0.0f);
    for (int64_t e = 0; e < length; ++e) {
      for (int64_t h = 0; h < s.heads; ++h) sum[h] += g[e * s.heads + h] * y[e * s.heads + h];
    }
    for (int64_t e = 0; e < length; ++e) {
      for (int64_t h = 0; h < s.heads; ++h) {
        g[e * s.heads + h] = y[e * s.heads + h] * (g[e * s.heads + h] - sum[h]);
      }
    }
  }
}

bool folds(int64_t heads) { return heads <= kLanes && kLanes % heads == 0; }

}  // namespace

void softmax_rows_of_target(const SoftmaxRows& s) { folds(s.heads) ? softmax_folded(s) : softmax_by_head(s); }
void softmax_grad_rows_of_target(const SoftmaxRows& s) { folds(s.heads) ? grad_folded(s) : grad_by_head(s); }

}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {
HWY_EXPORT(softmax_rows_of_target);
HWY_EXPORT(softmax_grad_rows_of_target);

void softmax_rows(const SoftmaxRows& rows) { HWY_DYNAMIC_DISPATCH(softmax_rows_of_target)(rows); }
void softmax_grad_rows(const SoftmaxRows& rows) { HWY_DYNAMIC_DISPATCH(softmax_grad_rows_of_target)(rows); }

}  // namespace nacre::cpu
#endif

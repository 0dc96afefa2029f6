// Micro-ops that work on a row as a whole: sums, shapes and normalisation.
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/micro_rows.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "nacre/kernel/cpu/micro_ops.h"
#include "nacre/kernel/cpu/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE float sum_row(const float* x, int64_t n) {
  return sum_vectors(n, [&](int64_t i, int64_t part) HWY_ATTR { return load_lanes(x + i, part); });
}

HWY_INLINE float dot_row(const float* x, const float* y, int64_t n) {
  return sum_vectors(
      n, [&](int64_t i, int64_t part) HWY_ATTR { return hn::Mul(load_lanes(x + i, part), load_lanes(y + i, part)); });
}

// ---- sums
void row_sum(const MicroCall& c) {
  const int64_t group = c.a.width / c.out_width;
  const RowPrefetch fetch_a(c.a, c.rows);
  for (int64_t r = 0; r < c.rows; ++r) {
    fetch_a(r);
    const float* a = c.a.row(r);
    for (int64_t g = 0; g < c.out_width; ++g) c.out[r * c.out_width + g] = sum_row(a + g * group, group);
  }
}

void dot_repeated(const MicroCall& c, int64_t group) {
  const int64_t ar = c.micro->a_repeat, br = c.micro->b_repeat;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* a = c.a.row(r);
    const float* b = c.b.row(r);
    for (int64_t g = 0; g < c.out_width; ++g) {
      float sum = 0;
      for (int64_t i = g * group; i < (g + 1) * group; ++i) sum += a[i / ar] * b[i / br];
      c.out[r * c.out_width + g] = sum;
    }
  }
}

void dot(const MicroCall& c) {
  const int64_t group = c.a.width * c.micro->a_repeat / c.out_width;
  if (c.micro->a_repeat > 1 || c.micro->b_repeat > 1) return dot_repeated(c, group);
  const RowPrefetch fetch_a(c.a, c.rows);
  const RowPrefetch fetch_b(c.b, c.rows);
  for (int64_t r = 0; r < c.rows; ++r) {
    fetch_a(r);
    fetch_b(r);
    const float* a = c.a.row(r);
    const float* b = c.b.row(r);
    for (int64_t g = 0; g < c.out_width; ++g) {
      c.out[r * c.out_width + g] = dot_row(a + g * group, b + g * group, group);
    }
  }
}

// ---- shapes
HWY_INLINE void copy_run(const float* from, float* to, int64_t n) {
  apply1(from, to, n, [](FloatVec v) HWY_ATTR { return v; });
}

HWY_INLINE void fill_run(float value, float* to, int64_t n) {
  const auto v = hn::Set(Floats(), value);
  for (int64_t i = 0; i < n; i += kLanes) store_lanes(v, to + i, n - i);
}

void expand(const MicroCall& c) {
  const int64_t repeat = c.micro->a_repeat;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* a = c.a.row(r);
    float* out = c.out + r * c.out_width;
    for (int64_t g = 0; g * repeat < c.out_width; ++g) fill_run(a[g], out + g * repeat, repeat);
  }
}

void concat(const MicroCall& c) {
  const int64_t ap = c.micro->a_part, bp = c.micro->b_part;
  const RowPrefetch fetch_a(c.a, c.rows);
  const RowPrefetch fetch_b(c.b, c.rows);
  for (int64_t r = 0; r < c.rows; ++r) {
    fetch_a(r);
    fetch_b(r);
    const float* a = c.a.row(r);
    const float* b = c.b.row(r);
    float* out = c.out + r * c.out_width;
    for (int64_t g = 0; g * (ap + bp) < c.out_width; ++g) {
      copy_run(a + g * ap, out + g * (ap + bp), ap);
      copy_run(b + g * bp, out + g * (ap + bp) + ap, bp);
    }
  }
}

void slice(const MicroCall& c) {
  const int64_t groups = c.a.width / c.micro->a_part, part = c.out_width / groups;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* a = c.a.row(r) + c.micro->begin;
    float* out = c.out + r * c.out_width;
    for (int64_t g = 0; g < groups; ++g) copy_run(a + g * c.micro->a_part, out + g * part, part);
  }
}

// In a pad, a_part is the size of the last dimension of a.
void pad(const MicroCall& c) {
  const int64_t part = c.micro->a_part, groups = c.a.width / part, total = c.out_width / groups;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* a = c.a.row(r);
    float* out = c.out + r * c.out_width;
    fill_run(0, out, c.out_width);
    for (int64_t g = 0; g < groups; ++g) copy_run(a + g * part, out + g * total + c.micro->begin, part);
  }
}

void take_max(const MicroCall& c) {
  const auto* argmax = static_cast<const int32_t*>(c.operand);
  for (int64_t r = 0; r < c.rows; ++r) {
    const auto position = static_cast<int32_t>(c.position != nullptr ? c.position[r] : c.first_position + r);
    const int32_t* best = argmax + int64_t{c.dst[r]} * c.out_width;
    const float* a = c.a.row(r);
    float* out = c.out + r * c.out_width;
    for (int64_t i = 0; i < c.out_width; ++i) out[i] = best[i] == position ? a[i] : 0.0f;
  }
}

// ---- normalisation
struct RowMoments {
  float mean;
  float inv_std;
};

HWY_INLINE RowMoments row_moments(const float* x, int64_t n, float epsilon) {
  const Floats d;
  const auto count = static_cast<float>(n);
  const float mean = sum_row(x, n) / count;
  const auto center = hn::Set(d, mean);
  const float squares = sum_vectors(n, [&](int64_t i, int64_t part) HWY_ATTR {
    const auto v = hn::Sub(load_lanes(x + i, part), center);
    const auto live = part >= kLanes ? v : hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(part)), v);
    return hn::Mul(live, live);
  });
  return {mean, 1.0f / std::sqrt(squares / count + epsilon)};
}

void row_normalize(const MicroCall& c) {
  const Floats d;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* a = c.a.row(r);
    const RowMoments m = row_moments(a, c.out_width, c.micro->alpha);
    const auto mean = hn::Set(d, m.mean), factor = hn::Set(d, m.inv_std);
    apply1(a, c.out + r * c.out_width, c.out_width,
           [&](FloatVec x) HWY_ATTR { return hn::Mul(hn::Sub(x, mean), factor); });
  }
}

// With y the normalised row and s = 1/std, the gradient is s · (g − mean(g) − y · mean(g·y)).
void row_normalize_grad(const MicroCall& c) {
  const Floats d;
  const int64_t n = c.out_width;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* g = c.a.row(r);
    const float* x = c.b.row(r);
    const RowMoments m = row_moments(x, n, c.micro->alpha);
    const auto mean = hn::Set(d, m.mean), factor = hn::Set(d, m.inv_std);
    const auto count = static_cast<float>(n);
    const auto g_mean = hn::Set(d, sum_row(g, n) / count);
    // Unused lanes do not change the sum, because g is 0 in them.
    const float gy = sum_vectors(n, [&](int64_t i, int64_t part) HWY_ATTR {
      return hn::Mul(load_lanes(g + i, part), hn::Mul(hn::Sub(load_lanes(x + i, part), mean), factor));
    });
    const auto gy_mean = hn::Set(d, gy / count);
    apply2(g, x, c.out + r * n, n, [&](FloatVec gv, FloatVec xv) HWY_ATTR {
      const auto y = hn::Mul(hn::Sub(xv, mean), factor);
      return hn::Mul(factor, hn::Sub(hn::Sub(gv, g_mean), hn::Mul(y, gy_mean)));
    });
  }
}

HWY_INLINE float max_row(const float* x, int64_t n) {
  const Floats d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto best = lowest;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) best = hn::Max(best, hn::LoadU(d, x + i));
  if (i < n) {
    const auto live = hn::FirstN(d, static_cast<size_t>(n - i));
    best = hn::Max(best, hn::IfThenElse(live, load_part(x + i, n - i), lowest));
  }
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

void log_softmax(const MicroCall& c) {
  const Floats d;
  const int64_t n = c.out_width;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* a = c.a.row(r);
    const float top = max_row(a, n);
    const auto shift = hn::Set(d, top);
    const float sum = sum_vectors(n, [&](int64_t i, int64_t part) HWY_ATTR {
      const auto e = hn::Exp(d, hn::Sub(load_lanes(a + i, part), shift));
      return part >= kLanes ? e : hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(part)), e);
    });
    const auto log_sum = hn::Set(d, std::log(sum));
    apply1(a, c.out + r * n, n, [&](FloatVec x) HWY_ATTR { return hn::Sub(hn::Sub(x, shift), log_sum); });
  }
}

void log_softmax_grad(const MicroCall& c) {
  const Floats d;
  const int64_t n = c.out_width;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* g = c.a.row(r);
    const auto sum = hn::Set(d, sum_row(g, n));
    apply2(g, c.b.row(r), c.out + r * n, n,
           [&](FloatVec gv, FloatVec yv) HWY_ATTR { return hn::Sub(gv, hn::Mul(hn::Exp(d, yv), sum)); });
  }
}

// The loop over strips of columns is outside and that over rows inside, so that the square root and
// the division are done once for each column of a tile.
void standardize(const MicroCall& c) {
  const Floats d;
  const int64_t n = c.out_width;
  const auto* moments = static_cast<const float*>(c.operand);
  const auto epsilon = hn::Set(d, c.micro->alpha);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t part = std::min(kLanes, n - i);
    const auto mean = load_lanes(moments + i, part);
    const auto variance = hn::Add(load_lanes(moments + n + i, part), epsilon);
    const auto factor = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(variance));
    for (int64_t r = 0; r < c.rows; ++r) {
      const auto x = load_lanes(c.a.row(r) + i, part);
      store_lanes(hn::Mul(hn::Sub(x, mean), factor), c.out + r * n + i, part);
    }
  }
}

}  // namespace

MicroFunction row_micro(MicroOp op) {
  switch (op) {
    case MicroOp::row_sum:
      return row_sum;
    case MicroOp::dot:
      return dot;
    case MicroOp::expand:
      return expand;
    case MicroOp::concat:
      return concat;
    case MicroOp::slice:
      return slice;
    case MicroOp::pad:
      return pad;
    case MicroOp::take_max:
      return take_max;
    case MicroOp::row_normalize:
      return row_normalize;
    case MicroOp::row_normalize_grad:
      return row_normalize_grad;
    case MicroOp::log_softmax:
      return log_softmax;
    case MicroOp::log_softmax_grad:
      return log_softmax_grad;
    case MicroOp::standardize:
      return standardize;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {
HWY_EXPORT(row_micro);

MicroFunction row_micro_function(MicroOp op) { return HWY_DYNAMIC_DISPATCH(row_micro)(op); }

}  // namespace nacre::cpu
#endif

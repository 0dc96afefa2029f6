#include "nacre/kernel/cpu/micro_ops.h"

#include <array>

#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/micro_ops.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "nacre/kernel/cpu/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

// ---- one operand
template <class F>
HWY_INLINE void unary(const MicroCall& c, const F& f) {
  if (c.a.packed()) {
    apply1(c.a.base, c.out, c.rows * c.out_width, f);
    return;
  }
  const RowPrefetch fetch_a(c.a, c.rows);
  for (int64_t r = 0; r < c.rows; ++r) {
    fetch_a(r);
    apply1(c.a.row(r), c.out + r * c.out_width, c.out_width, f);
  }
}

// ---- two operands

// Computes an operation of which both operands are repeated. Models need it too rarely to vectorise
// it.
template <class F>
HWY_INLINE void binary_repeated(const MicroCall& c, const F& f) {
  const Floats d;
  const int64_t ar = c.micro->a_repeat, br = c.micro->b_repeat;
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* a = c.a.row(r);
    const float* b = c.b.row(r);
    float* out = c.out + r * c.out_width;
    for (int64_t i = 0; i < c.out_width; ++i) out[i] = hn::GetLane(f(hn::Set(d, a[i / ar]), hn::Set(d, b[i / br])));
  }
}

template <class F>
HWY_INLINE void binary(const MicroCall& c, const F& f) {
  const Floats d;
  const int64_t ar = c.micro->a_repeat, br = c.micro->b_repeat;
  if (ar > 1 && br > 1) return binary_repeated(c, f);
  if (ar == 1 && br == 1 && c.a.packed() && c.b.packed()) {
    apply2(c.a.base, c.b.base, c.out, c.rows * c.out_width, f);
    return;
  }
  const RowPrefetch fetch_a(c.a, c.rows);
  const RowPrefetch fetch_b(c.b, c.rows);
  for (int64_t r = 0; r < c.rows; ++r) {
    fetch_a(r);
    fetch_b(r);
    const float* a = c.a.row(r);
    const float* b = c.b.row(r);
    float* out = c.out + r * c.out_width;
    if (ar == 1 && br == 1) {
      apply2(a, b, out, c.out_width, f);
    } else if (br > 1) {
      for (int64_t g = 0; g * br < c.out_width; ++g) {
        const auto vb = hn::Set(d, b[g]);
        apply1(a + g * br, out + g * br, br, [&](FloatVec va) HWY_ATTR { return f(va, vb); });
      }
    } else {
      for (int64_t g = 0; g * ar < c.out_width; ++g) {
        const auto va = hn::Set(d, a[g]);
        apply1(b + g * ar, out + g * ar, ar, [&](FloatVec vb) HWY_ATTR { return f(va, vb); });
      }
    }
  }
}

// ---- the functions: types with a static call, so that each is compiled into a loop of its own
struct AddOp {
  static HWY_INLINE FloatVec call(FloatVec a, FloatVec b, FloatVec) { return hn::Add(a, b); }
};
struct SubOp {
  static HWY_INLINE FloatVec call(FloatVec a, FloatVec b, FloatVec) { return hn::Sub(a, b); }
};
struct MulOp {
  static HWY_INLINE FloatVec call(FloatVec a, FloatVec b, FloatVec) { return hn::Mul(a, b); }
};

struct ScaleOp {
  static HWY_INLINE FloatVec call(FloatVec x, FloatVec alpha) { return hn::Mul(alpha, x); }
};
struct InvOp {
  static HWY_INLINE FloatVec call(FloatVec x, FloatVec) {
    const Floats d;
    return hn::IfThenElseZero(hn::Ne(x, hn::Zero(d)), hn::Div(hn::Set(d, 1.0f), x));
  }
};
struct InvSqrtOp {
  static HWY_INLINE FloatVec call(FloatVec x, FloatVec) {
    const Floats d;
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)));
  }
};

// The functions that dfg/activations.h lists, under the same names.
namespace activation {
struct relu {
  // With x as the second operand, the x86 instruction keeps a NaN in x.
  static HWY_INLINE FloatVec call(FloatVec x, FloatVec) { return hn::Max(hn::Zero(Floats()), x); }
};
struct relu_grad {
  static HWY_INLINE FloatVec call(FloatVec g, FloatVec y, FloatVec) {
    return hn::IfThenElseZero(hn::Gt(y, hn::Zero(Floats())), g);
  }
};
struct leaky_relu {
  static HWY_INLINE FloatVec call(FloatVec x, FloatVec alpha) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(Floats())), x, hn::Mul(alpha, x));
  }
};
struct leaky_relu_grad {
  static HWY_INLINE FloatVec call(FloatVec g, FloatVec y, FloatVec alpha) {
    return hn::IfThenElse(hn::Gt(y, hn::Zero(Floats())), g, hn::Mul(alpha, g));
  }
};
struct elu {
  static HWY_INLINE FloatVec call(FloatVec x, FloatVec alpha) {
    const Floats d;
    const auto below = hn::Mul(alpha, hn::Expm1(d, hn::Min(x, hn::Zero(d))));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, below);
  }
};
struct elu_grad {
  static HWY_INLINE FloatVec call(FloatVec g, FloatVec y, FloatVec alpha) {
    return hn::IfThenElse(hn::Gt(y, hn::Zero(Floats())), g, hn::Mul(g, hn::Add(y, alpha)));
  }
};
struct sigmoid {
  // e^-|x| never overflows, so this uses 1/(1+e^-x) for x ≥ 0 and e^x/(1+e^x) for x < 0.
  static HWY_INLINE FloatVec call(FloatVec x, FloatVec) {
    const Floats d;
    const auto one = hn::Set(d, 1.0f);
    const auto e = hn::Exp(d, hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Ge(x, hn::Zero(d)), one, e), hn::Add(one, e));
  }
};
struct sigmoid_grad {
  static HWY_INLINE FloatVec call(FloatVec g, FloatVec y, FloatVec) {
    return hn::Mul(g, hn::Mul(y, hn::Sub(hn::Set(Floats(), 1.0f), y)));
  }
};
struct tanh {
  static HWY_INLINE FloatVec call(FloatVec x, FloatVec) { return hn::Tanh(Floats(), x); }
};
struct tanh_grad {
  static HWY_INLINE FloatVec call(FloatVec g, FloatVec y, FloatVec) {
    return hn::Mul(g, hn::NegMulAdd(y, y, hn::Set(Floats(), 1.0f)));
  }
};
}  // namespace activation

template <class Function>
void run_unary(const MicroCall& c) {
  const auto alpha = hn::Set(Floats(), c.micro->alpha);
  unary(c, [&](FloatVec x) HWY_ATTR { return Function::call(x, alpha); });
}

template <class Function>
void run_binary(const MicroCall& c) {
  const auto alpha = hn::Set(Floats(), c.micro->alpha);
  binary(c, [&](FloatVec a, FloatVec b) HWY_ATTR { return Function::call(a, b, alpha); });
}

}  // namespace

MicroFunction elementwise_micro(MicroOp op) {
  switch (op) {
    case MicroOp::add:
      return run_binary<AddOp>;
    case MicroOp::sub:
      return run_binary<SubOp>;
    case MicroOp::mul:
      return run_binary<MulOp>;
    case MicroOp::scale:
      return run_unary<ScaleOp>;
    case MicroOp::inv:
      return run_unary<InvOp>;
    case MicroOp::inv_sqrt:
      return run_unary<InvSqrtOp>;
#define NACRE_CASES(name, ...)          \
  case MicroOp::name:                   \
    return run_unary<activation::name>; \
  case MicroOp::name##_grad:            \
    return run_binary<activation::name##_grad>;
      NACRE_ACTIVATIONS(NACRE_CASES)
#undef NACRE_CASES
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {
HWY_EXPORT(elementwise_micro);

namespace {

constexpr size_t kNumMicroOps = static_cast<size_t>(MicroOp::store) + 1;

std::array<MicroFunction, kNumMicroOps> all_micro_functions() {
  std::array<MicroFunction, kNumMicroOps> table{};
  for (size_t i = 0; i < kNumMicroOps; ++i) {
    const auto op = static_cast<MicroOp>(i);
    table[i] = HWY_DYNAMIC_DISPATCH(elementwise_micro)(op);
    if (table[i] == nullptr) table[i] = row_micro_function(op);
  }
  table[static_cast<size_t>(MicroOp::dropout)] = dropout_function();
  return table;
}

}  // namespace

const MicroFunction* micro_functions() {
  static const std::array<MicroFunction, kNumMicroOps> table = all_micro_functions();
  return table.data();
}

}  // namespace nacre::cpu
#endif

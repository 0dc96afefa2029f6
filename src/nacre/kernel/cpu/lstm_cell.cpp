#include "nacre/kernel/cpu/lstm_cell.h"

#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/lstm_cell.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// Returns 1 / (1 + e⁻ˣ), and NaN for NaN. Highway's exponential is valid up to an exponent of 104
// and turns NaN into 0, so large exponents are cut off and NaN is passed through.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const auto one = hn::Set(d, 1.0f);
  const auto y = hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(hn::Max(x, hn::Set(d, -88.0f))))));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// Holds the pointers of one row, advanced by `lane` columns.
struct ForwardRow {
  float* gates;
  int64_t hidden;
  const float* c_before;
  float* c;
  float* h;  // null: not wanted
  bool keep_gates;
};

template <class D>
HWY_INLINE void forward_columns(D d, const ForwardRow& row, int64_t column) {
  float* gate = row.gates + column;
  const auto i = sigmoid(d, hn::LoadU(d, gate));
  const auto f = sigmoid(d, hn::LoadU(d, gate + row.hidden));
  const auto g = hn::Tanh(d, hn::LoadU(d, gate + 2 * row.hidden));
  const auto o = sigmoid(d, hn::LoadU(d, gate + 3 * row.hidden));
  auto c = hn::Mul(i, g);
  if (row.c_before != nullptr) c = hn::MulAdd(f, hn::LoadU(d, row.c_before + column), c);
  hn::StoreU(c, d, row.c + column);
  if (row.h != nullptr) hn::StoreU(hn::Mul(o, hn::Tanh(d, c)), d, row.h + column);
  if (!row.keep_gates) return;
  hn::StoreU(i, d, gate);
  hn::StoreU(f, d, gate + row.hidden);
  hn::StoreU(g, d, gate + 2 * row.hidden);
  hn::StoreU(o, d, gate + 3 * row.hidden);
}

void forward_impl(const LstmCell& cell, const LstmForward& to) {
  const Full d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t hidden = cell.hidden;
  for (int64_t r = 0; r < cell.rows; ++r) {
    const ForwardRow row = {cell.gates + r * 4 * hidden,
                            hidden,
                            cell.c_before == nullptr ? nullptr : cell.c_before + r * hidden,
                            to.c + r * hidden,
                            r < to.h_rows ? to.h + r * hidden : nullptr,
                            to.keep_gates};
    int64_t c = 0;
    for (; c + lanes <= hidden; c += lanes) forward_columns(d, row, c);
    for (; c < hidden; ++c) forward_columns(One(), row, c);
  }
}

template <class D>
HWY_INLINE void state_columns(D d, const LstmStates& row, int64_t column) {
  const float* gate = row.kept + column;
  auto c = hn::Mul(hn::LoadU(d, gate), hn::LoadU(d, gate + 2 * row.hidden));
  if (row.c_before != nullptr) c = hn::MulAdd(hn::LoadU(d, gate + row.hidden), hn::LoadU(d, row.c_before + column), c);
  hn::StoreU(c, d, row.c + column);
  if (row.h == nullptr) return;
  hn::StoreU(hn::Mul(hn::LoadU(d, gate + 3 * row.hidden), hn::Tanh(d, c)), d, row.h + column);
}

void states_impl(const LstmStates& row) {
  const Full d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= row.hidden; c += lanes) state_columns(d, row, c);
  for (; c < row.hidden; ++c) state_columns(One(), row, c);
}

struct BackwardRow {
  const float* kept;
  float* gates;
  int64_t hidden;
  const float* c_before;
  const float* c;
  const float* dh;
  float* dc;
};

template <class D>
HWY_INLINE void backward_columns(D d, const BackwardRow& row, int64_t column) {
  float* gate = row.gates + column;
  const float* kept = row.kept + column;
  const auto one = hn::Set(d, 1.0f);
  const auto i = hn::LoadU(d, kept);
  const auto f = hn::LoadU(d, kept + row.hidden);
  const auto g = hn::LoadU(d, kept + 2 * row.hidden);
  const auto o = hn::LoadU(d, kept + 3 * row.hidden);
  const auto th = hn::Tanh(d, hn::LoadU(d, row.c + column));
  const auto before = row.c_before == nullptr ? hn::Zero(d) : hn::LoadU(d, row.c_before + column);
  const auto dh = hn::LoadU(d, row.dh + column);
  const auto dc = hn::MulAdd(hn::Mul(dh, o), hn::NegMulAdd(th, th, one), hn::LoadU(d, row.dc + column));
  hn::StoreU(hn::Mul(hn::Mul(dc, g), hn::Mul(i, hn::Sub(one, i))), d, gate);
  hn::StoreU(hn::Mul(hn::Mul(dc, before), hn::Mul(f, hn::Sub(one, f))), d, gate + row.hidden);
  hn::StoreU(hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, one)), d, gate + 2 * row.hidden);
  hn::StoreU(hn::Mul(hn::Mul(dh, th), hn::Mul(o, hn::Sub(one, o))), d, gate + 3 * row.hidden);
  hn::StoreU(hn::Mul(dc, f), d, row.dc + column);
}

void backward_impl(const LstmCell& cell, const LstmBackward& from) {
  const Full d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t hidden = cell.hidden;
  for (int64_t r = 0; r < cell.rows; ++r) {
    const BackwardRow row = {(from.kept != nullptr ? from.kept : cell.gates) + r * 4 * hidden,
                             cell.gates + r * 4 * hidden,
                             hidden,
                             cell.c_before == nullptr ? nullptr : cell.c_before + r * hidden,
                             from.c + r * hidden,
                             from.dh + r * hidden,
                             from.dc + r * hidden};
    int64_t c = 0;
    for (; c + lanes <= hidden; c += lanes) backward_columns(d, row, c);
    for (; c < hidden; ++c) backward_columns(One(), row, c);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {

HWY_EXPORT(forward_impl);
HWY_EXPORT(states_impl);
HWY_EXPORT(backward_impl);

void lstm_cell_forward(const LstmCell& cell, const LstmForward& to) { HWY_DYNAMIC_DISPATCH(forward_impl)(cell, to); }

void lstm_cell_states(const LstmStates& row) { HWY_DYNAMIC_DISPATCH(states_impl)(row); }

void lstm_cell_backward(const LstmCell& cell, const LstmBackward& from) {
  HWY_DYNAMIC_DISPATCH(backward_impl)(cell, from);
}

}  // namespace nacre::cpu
#endif  // HWY_ONCE

// Defines the reference of the operations on single elements: constants, arithmetic with
// broadcasting, activations and their gradients, dropout.
#include <cmath>

#include "nacre/dfg/random.h"
#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {
namespace {

// Returns how often an element of the operand is repeated to fill a row of the result: 1, unless
// the operand's dimensions are a proper prefix of the result's.
template <class T>
int64_t repeat(const Writer<T>& out, const Reader<T>& in) {
  return in.row_size() == 0 ? 1 : out.row_size() / in.row_size();
}

template <class T, class F>
bool unary(const Call<T>& c, F f) {
  const auto x = c.in(0);
  const auto out = c.out();
  const int64_t times = repeat(out, x);
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t j = 0; j < out.row_size(); ++j) out(r, j, f(x(r, j / times)));
  }
  return true;
}

template <class T, class F>
bool binary(const Call<T>& c, F f) {
  const auto a = c.in(0);
  const auto b = c.in(1);
  const auto out = c.out();
  const int64_t times_a = repeat(out, a);
  const int64_t times_b = repeat(out, b);
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t j = 0; j < out.row_size(); ++j) out(r, j, f(a(r, j / times_a), b(r, j / times_b)));
  }
  return true;
}

template <class T>
bool constant(const Call<T>& c) {
  const auto out = c.out();
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t j = 0; j < out.row_size(); ++j) out(r, j, c.node.alpha);
  }
  return true;
}

template <class T>
bool dropout(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  const DropoutStream stream(c.step.seed, c.node.salt, c.step.step);
  const uint32_t threshold = dropout_threshold(c.node.alpha);
  const RowIds ids = c.blocks.ids(c.out_type().space);
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t j = 0; j < out.row_size(); ++j) {
      const bool kept = dropout_keep(stream, static_cast<uint64_t>(ids[r] * out.row_size() + j), threshold);
      out(r, j, kept ? x(r, j) / (1 - c.node.alpha) : 0);
    }
  }
  return true;
}

template <class T>
bool run_activation(const Call<T>& c) {
  [[maybe_unused]] const double alpha = c.node.alpha;
  switch (c.node.op) {
#define NACRE_CASES(name, usual, reads, value, gradient, ...)   \
  case Op::name:                                                \
    return unary(c, [=](double x) -> double { return value; }); \
  case Op::name##_grad:                                         \
    return binary(c, [=](double g, double y) -> double { return gradient; });
    NACRE_ACTIVATIONS(NACRE_CASES)
#undef NACRE_CASES
    default:
      return false;
  }
}

}  // namespace

template <class T>
bool run_elementwise(const Call<T>& call) {
  const double alpha = call.node.alpha;
  switch (call.node.op) {
    case Op::constant:
      return constant(call);
    case Op::add:
      return binary(call, [](double a, double b) { return a + b; });
    case Op::sub:
      return binary(call, [](double a, double b) { return a - b; });
    case Op::mul:
      return binary(call, [](double a, double b) { return a * b; });
    case Op::scale:
      return unary(call, [alpha](double x) { return alpha * x; });
    case Op::inv:
      return unary(call, [](double x) { return x == 0 ? 0 : 1 / x; });
    case Op::inv_sqrt:
      return unary(call, [](double x) { return x <= 0 ? 0 : 1 / std::sqrt(x); });
    case Op::expand:
    case Op::reshape:
      return unary(call, [](double x) { return x; });
    case Op::dropout:
      return dropout(call);
    default:
      return run_activation(call);
  }
}
NACRE_REF_FAMILY(run_elementwise);

}  // namespace nacre::ref

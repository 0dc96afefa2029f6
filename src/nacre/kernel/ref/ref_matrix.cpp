// Defines the reference of the products of rows with one matrix, or with one matrix for each edge
// type.
#include <vector>

#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {
namespace {

// Gives the row of the weight operand that row r of `space` uses: 0, or the type of row r.
class WeightRow {
 public:
  WeightRow(const Blocks& blocks, Space space, bool typed) : blocks_(blocks), space_(space), typed_(typed) {}
  int64_t operator()(int64_t r) const { return typed_ ? type_of(blocks_, space_, r) : 0; }

 private:
  const Blocks& blocks_;
  Space space_;
  bool typed_;
};

// Computes products of rows with matrices. Element (k, n) of the matrix in row t of w is w(t, k·N +
// n).
template <class T>
void product(const Call<T>& c, bool typed) {
  const auto x = c.in(0);
  const auto w = c.in(1);
  const auto out = c.out();
  const WeightRow weight_row(c.blocks, c.in_type(0).space, typed);
  const int64_t columns = out.row_size();
  for (int64_t r = 0; r < out.rows(); ++r) {
    const int64_t t = weight_row(r);
    std::vector<double> sum(count(columns), 0);
    for (int64_t k = 0; k < x.row_size(); ++k) {
      const double value = x(r, k);
      for (int64_t n = 0; n < columns; ++n) sum[count(n)] += value * w(t, k * columns + n);
    }
    for (int64_t n = 0; n < columns; ++n) out(r, n, sum[count(n)]);
  }
}

template <class T>
void product_t(const Call<T>& c, bool typed) {
  const auto g = c.in(0);
  const auto w = c.in(1);
  const auto out = c.out();
  const WeightRow weight_row(c.blocks, c.in_type(0).space, typed);
  const int64_t columns = g.row_size();
  for (int64_t r = 0; r < out.rows(); ++r) {
    const int64_t t = weight_row(r);
    for (int64_t k = 0; k < out.row_size(); ++k) {
      double sum = 0;
      for (int64_t n = 0; n < columns; ++n) sum += g(r, n) * w(t, k * columns + n);
      out(r, k, sum);
    }
  }
}

template <class T>
void weight_gradient(const Call<T>& c, bool typed) {
  const auto x = c.in(0);
  const auto g = c.in(1);
  const auto out = c.out();
  const WeightRow weight_row(c.blocks, c.in_type(0).space, typed);
  std::vector<double> sum(count(out.rows() * out.row_size()), 0);
  for (int64_t r = 0; r < x.rows(); ++r) {
    const int64_t base = weight_row(r) * out.row_size();
    for (int64_t k = 0; k < x.row_size(); ++k) {
      for (int64_t n = 0; n < g.row_size(); ++n) sum[count(base + k * g.row_size() + n)] += x(r, k) * g(r, n);
    }
  }
  store(out, sum);
}

}  // namespace

template <class T>
bool run_matrix(const Call<T>& call) {
  switch (call.node.op) {
    case Op::matmul:
      return product(call, false), true;
    case Op::typed_matmul:
      return product(call, true), true;
    case Op::matmul_t:
      return product_t(call, false), true;
    case Op::typed_matmul_t:
      return product_t(call, true), true;
    case Op::weight_grad:
      return weight_gradient(call, false), true;
    case Op::typed_weight_grad:
      return weight_gradient(call, true), true;
    default:
      return false;
  }
}
NACRE_REF_FAMILY(run_matrix);

}  // namespace nacre::ref

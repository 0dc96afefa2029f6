// Defines the reference of the normalisation over columns (batch norm) and over rows (layer norm).
//
// Both gradients have the same formula. With y = (x − mean)/σ and σ = √(variance + alpha) over the
// n values of one group, dx = (g − mean(g) − y·mean(g·y))/σ.
#include <cmath>
#include <vector>

#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;
};

// Returns the mean and the variance of n values; both are 0 if n is 0.
template <class F>
Moments moments(int64_t n, F value) {
  if (n == 0) return {};
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += value(i);
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += (value(i) - mean) * (value(i) - mean);
  return {mean, squares / static_cast<double>(n)};
}

struct GradTerms {
  double sigma;
  double mean_g;
  double mean_gy;
};

template <class F, class G>
GradTerms grad_terms(int64_t n, const Moments& m, double alpha, F value, G gradient) {
  GradTerms terms{std::sqrt(m.variance + alpha), 0, 0};
  for (int64_t i = 0; i < n; ++i) {
    terms.mean_g += gradient(i);
    terms.mean_gy += gradient(i) * (value(i) - m.mean) / terms.sigma;
  }
  terms.mean_g /= static_cast<double>(n);
  terms.mean_gy /= static_cast<double>(n);
  return terms;
}

double normalize_grad(double g, double x, const Moments& m, const GradTerms& terms) {
  return (g - terms.mean_g - (x - m.mean) / terms.sigma * terms.mean_gy) / terms.sigma;
}

template <class T>
void column_moments(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  for (int64_t j = 0; j < x.row_size(); ++j) {
    const Moments m = moments(x.rows(), [&](int64_t r) { return x(r, j); });
    out(0, j, m.mean);
    out(0, x.row_size() + j, m.variance);
  }
}

template <class T>
void standardize(const Call<T>& c) {
  const auto x = c.in(0);
  const auto m = c.in(1);
  const auto out = c.out();
  const int64_t columns = out.row_size();
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      out(r, j, (x(r, j) - m(0, j)) / std::sqrt(m(0, columns + j) + c.node.alpha));
    }
  }
}

template <class T>
void standardize_grad(const Call<T>& c) {
  const auto g = c.in(0);
  const auto x = c.in(1);
  const auto given = c.in(2);
  const auto out = c.out();
  for (int64_t j = 0; j < out.row_size(); ++j) {
    const Moments m{given(0, j), given(0, out.row_size() + j)};
    const GradTerms terms = grad_terms(
        out.rows(), m, c.node.alpha, [&](int64_t r) { return x(r, j); }, [&](int64_t r) { return g(r, j); });
    for (int64_t r = 0; r < out.rows(); ++r) out(r, j, normalize_grad(g(r, j), x(r, j), m, terms));
  }
}

template <class T>
void row_normalize(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  for (int64_t r = 0; r < out.rows(); ++r) {
    const Moments m = moments(x.row_size(), [&](int64_t j) { return x(r, j); });
    const double sigma = std::sqrt(m.variance + c.node.alpha);
    for (int64_t j = 0; j < out.row_size(); ++j) out(r, j, (x(r, j) - m.mean) / sigma);
  }
}

template <class T>
void row_normalize_grad(const Call<T>& c) {
  const auto g = c.in(0);
  const auto x = c.in(1);
  const auto out = c.out();
  for (int64_t r = 0; r < out.rows(); ++r) {
    const auto value = [&](int64_t j) { return x(r, j); };
    const Moments m = moments(x.row_size(), value);
    const GradTerms terms = grad_terms(x.row_size(), m, c.node.alpha, value, [&](int64_t j) { return g(r, j); });
    for (int64_t j = 0; j < out.row_size(); ++j) out(r, j, normalize_grad(g(r, j), x(r, j), m, terms));
  }
}

}  // namespace

template <class T>
bool run_norm(const Call<T>& call) {
  switch (call.node.op) {
    case Op::column_moments:
      return column_moments(call), true;
    case Op::standardize:
      return standardize(call), true;
    case Op::standardize_grad:
      return standardize_grad(call), true;
    case Op::row_normalize:
      return row_normalize(call), true;
    case Op::row_normalize_grad:
      return row_normalize_grad(call), true;
    default:
      return false;
  }
}
NACRE_REF_FAMILY(run_norm);

}  // namespace nacre::ref

// Defines the reference of log-softmax, the losses and their gradients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {
namespace {

// Returns the number of classes, which is the size of the last dimension: element j of run i of a
// row is at i·classes + j.
template <class T>
int64_t classes_of(const Call<T>& c) {
  return c.out_type().dims.empty() ? 1 : c.out_type().dims.back();
}

template <class T>
void log_softmax(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  const int64_t classes = classes_of(c);
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t begin = 0; begin < out.row_size(); begin += classes) {
      double top = -std::numeric_limits<double>::infinity();
      for (int64_t j = begin; j < begin + classes; ++j) top = std::max(top, x(r, j));
      double sum = 0;
      for (int64_t j = begin; j < begin + classes; ++j) sum += std::exp(x(r, j) - top);
      for (int64_t j = begin; j < begin + classes; ++j) out(r, j, x(r, j) - top - std::log(sum));
    }
  }
}

template <class T>
void log_softmax_grad(const Call<T>& c) {
  const auto g = c.in(0);
  const auto y = c.in(1);
  const auto out = c.out();
  const int64_t classes = classes_of(c);
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t begin = 0; begin < out.row_size(); begin += classes) {
      double sum = 0;
      for (int64_t j = begin; j < begin + classes; ++j) sum += g(r, j);
      for (int64_t j = begin; j < begin + classes; ++j) out(r, j, g(r, j) - std::exp(y(r, j)) * sum);
    }
  }
}

// Returns the label of row r, or -1 if the row is left out.
template <class T>
int64_t label_of(const Reader<T>& labels, int64_t r, int64_t classes) {
  const auto label = static_cast<int64_t>(labels(r));
  NACRE_CHECK(label < classes, "label " + std::to_string(label) + " of row " + std::to_string(r) + " is not below " +
                                   std::to_string(classes));
  return std::max<int64_t>(label, -1);
}

template <class T>
void nll(const Call<T>& c) {
  const auto lp = c.in(0);
  const auto labels = c.in(1);
  const auto weight = c.in(2);
  const double smoothing = c.node.alpha;
  double sum = 0;
  for (int64_t r = 0; r < lp.rows(); ++r) {
    const int64_t label = label_of(labels, r, lp.row_size());
    if (label < 0) continue;
    double all = 0;
    for (int64_t j = 0; j < lp.row_size(); ++j) all += lp(r, j);
    sum -= weight(r) * ((1 - smoothing) * lp(r, label) + smoothing * all / static_cast<double>(lp.row_size()));
  }
  c.out()(0, 0, sum);
}

template <class T>
void nll_grad(const Call<T>& c) {
  const auto labels = c.in(1);
  const auto weight = c.in(2);
  const auto g = c.in(3);
  const auto out = c.out();
  for (int64_t r = 0; r < out.rows(); ++r) {
    const int64_t label = label_of(labels, r, out.row_size());
    const double each = c.node.alpha / static_cast<double>(out.row_size());
    for (int64_t j = 0; j < out.row_size(); ++j) {
      const double share = label < 0 ? 0 : each + (j == label ? 1 - c.node.alpha : 0);
      out(r, j, -g(0) * weight(r) * share);
    }
  }
}

// Returns the weight of a row or, if elements have weights of their own, of an element of the row.
template <class Weights>
double weight_of(const Weights& weight, int64_t row, int64_t element) {
  return weight(row, weight.row_size() > 1 ? element : 0);
}

// Returns the target, moved towards one half by the label smoothing.
double smoothed(double target, double smoothing) { return target * (1 - smoothing) + smoothing / 2; }

template <class T>
void bce(const Call<T>& c) {
  const auto x = c.in(0);
  const auto target = c.in(1);
  const auto weight = c.in(2);
  double sum = 0;
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t j = 0; j < x.row_size(); ++j) {
      const double softplus = std::max(x(r, j), 0.0) + std::log1p(std::exp(-std::abs(x(r, j))));
      sum += weight_of(weight, r, j) * (softplus - smoothed(target(r, j), c.node.alpha) * x(r, j));
    }
  }
  c.out()(0, 0, sum);
}

template <class T>
void bce_grad(const Call<T>& c) {
  const auto x = c.in(0);
  const auto target = c.in(1);
  const auto weight = c.in(2);
  const auto g = c.in(3);
  const auto out = c.out();
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t j = 0; j < out.row_size(); ++j) {
      const double error = 1 / (1 + std::exp(-x(r, j))) - smoothed(target(r, j), c.node.alpha);
      out(r, j, g(0) * weight_of(weight, r, j) * error);
    }
  }
}

template <class T>
void l2(const Call<T>& c) {
  const auto x = c.in(0);
  double sum = 0;
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t j = 0; j < x.row_size(); ++j) sum += x(r, j) * x(r, j);
  }
  c.out()(0, 0, sum / 2);
}

}  // namespace

template <class T>
bool run_loss(const Call<T>& call) {
  switch (call.node.op) {
    case Op::log_softmax:
      return log_softmax(call), true;
    case Op::log_softmax_grad:
      return log_softmax_grad(call), true;
    case Op::nll:
      return nll(call), true;
    case Op::nll_grad:
      return nll_grad(call), true;
    case Op::bce:
      return bce(call), true;
    case Op::bce_grad:
      return bce_grad(call), true;
    case Op::l2:
      return l2(call), true;
    default:
      return false;
  }
}
NACRE_REF_FAMILY(run_loss);

}  // namespace nacre::ref

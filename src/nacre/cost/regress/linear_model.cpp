#include "nacre/cost/regress/linear_model.h"

namespace nacre {

double LinearModel::predict(std::span<const double> features) const {
  double sum = intercept_;
  for (size_t c = 0; c < weights_.size(); ++c) sum += weights_[c] * features[c];
  return sum;
}

void LinearModel::restore(const NumberLists& state, const std::string& where) {
  intercept_ = state_list(state, "intercept", 1, where)[0];
  weights_ = state_list(state, "weights", -1, where);
}

void LinearModel::set(const Standard& standard, std::span<const double> weights, double target_mean) {
  intercept_ = target_mean;
  weights_.resize(weights.size());
  for (size_t c = 0; c < weights.size(); ++c) {
    weights_[c] = weights[c] * standard.scale[c];
    intercept_ -= weights_[c] * standard.mean[c];
  }
}

NormalEquations NormalEquations::of(const SampleTable& standardised) {
  NormalEquations e;
  const int64_t n = standardised.columns;
  e.columns = n;
  e.gram.assign(n * n, 0.0);
  e.right.assign(n, 0.0);
  e.target_mean = mean_of(standardised.y);
  for (int64_t i = 0; i < standardised.rows(); ++i) {
    const std::span<const double> row = standardised.row(i);
    const double target = standardised.y[i] - e.target_mean;
    for (int64_t a = 0; a < n; ++a) {
      e.right[a] += row[a] * target;
      for (int64_t b = 0; b <= a; ++b) e.gram[a * n + b] += row[a] * row[b];
    }
  }
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = a + 1; b < n; ++b) e.gram[a * n + b] = e.gram[b * n + a];
  }
  return e;
}

double squared_error(const Standard& standard, std::span<const double> weights, double target_mean,
                     const SampleTable& test) {
  std::vector<double> row(weights.size());
  double sum = 0;
  for (int64_t i = 0; i < test.rows(); ++i) {
    standard.apply(test.row(i), row);
    double rest = test.y[i] - target_mean;
    for (size_t c = 0; c < row.size(); ++c) rest -= weights[c] * row[c];
    sum += rest * rest;
  }
  return sum;
}

}  // namespace nacre

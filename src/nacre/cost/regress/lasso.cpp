// Implements lasso by coordinate descent on XᵀX (Friedman, Hastie, Tibshirani, "Regularization
// Paths for Generalized Linear Models via Coordinate Descent", 2010). Penalties fall from the
// smallest one that makes all weights 0, and each solution starts from the one before.
#include <algorithm>
#include <cmath>

#include "nacre/cost/regress/linear_model.h"

namespace nacre {
namespace {

constexpr int kLassoFolds = 5;
constexpr int kPenalties = 40;
constexpr double kSmallest = 1e-4;  // the last penalty that is tried, divided by the first one
constexpr int kLassoSweeps = 500;

class LassoPath {
 public:
  explicit LassoPath(const SampleTable& samples)
      : standard_(Standard::of(samples)), equations_(NormalEquations::of(standard_.table(samples))) {
    const double n = std::max<double>(1, static_cast<double>(samples.rows()));
    for (double& v : equations_.gram) v /= n;
    for (double& v : equations_.right) v /= n;
    weights_.assign(equations_.columns, 0.0);
    slope_ = equations_.right;
  }

  // Returns the smallest penalty for which all weights are 0.
  double first_penalty() const {
    double most = 0;
    for (const double v : equations_.right) most = std::max(most, std::abs(v));
    return most;
  }

  // Minimises |y − Xw|² / 2n + penalty · Σ|w|, starting from the weights of the last call, and
  // returns the weights w.
  const std::vector<double>& solve(double penalty) {
    const int64_t n = equations_.columns;
    for (int sweep = 0; sweep < kLassoSweeps; ++sweep) {
      double moved = 0;
      for (int64_t c = 0; c < n; ++c) {
        const double own = equations_.gram[c * n + c];
        if (own <= 0) continue;
        const double wanted = slope_[c] + own * weights_[c];
        const double size = std::max(std::abs(wanted) - penalty, 0.0) / own;
        const double change = (wanted < 0 ? -size : size) - weights_[c];
        if (change == 0) continue;
        weights_[c] += change;
        for (int64_t k = 0; k < n; ++k) slope_[k] -= change * equations_.gram[k * n + c];
        moved = std::max(moved, std::abs(change));
      }
      if (moved <= 1e-7 * first_penalty()) break;
    }
    return weights_;
  }

  double error(const SampleTable& test) const {
    return squared_error(standard_, weights_, equations_.target_mean, test);
  }

  const Standard& standard() const { return standard_; }
  double target_mean() const { return equations_.target_mean; }

 private:
  Standard standard_;
  NormalEquations equations_;  // divided by the number of samples
  std::vector<double> weights_;
  std::vector<double> slope_;  // Xᵀ(y − Xw) / n
};

double penalty_at(double first, int index) {
  return first * std::pow(kSmallest, static_cast<double>(index) / (kPenalties - 1));
}

class Lasso : public LinearModel {
 public:
  Lasso() : LinearModel("lasso") {}
  void fit(const SampleTable& samples) override {
    LassoPath path(samples);
    const double first = path.first_penalty();
    const std::vector<double> errors =
        cross_errors(samples, kLassoFolds, [&](const SampleTable& training, const SampleTable& test) {
          LassoPath part(training);
          std::vector<double> sums;
          for (int i = 0; i < kPenalties; ++i) {
            part.solve(penalty_at(first, i));
            sums.push_back(part.error(test));
          }
          return sums;
        });
    const auto best =
        static_cast<int>(errors.empty() ? 0 : std::min_element(errors.begin(), errors.end()) - errors.begin());
    for (int i = 0; i < best; ++i) path.solve(penalty_at(first, i));
    set(path.standard(), path.solve(penalty_at(first, best)), path.target_mean());
  }
};

}  // namespace

std::unique_ptr<Regressor> make_lasso() { return std::make_unique<Lasso>(); }

}  // namespace nacre

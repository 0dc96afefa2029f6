// Implements linear and ridge regression by the eigenvectors of XᵀX, where X holds the standardised
// features. One decomposition gives the weights for every penalty. Features that depend on each
// other give eigenvalues near 0; linear regression leaves these directions out and so finds the
// shortest of the best weights. Jacobi rotations suffice, because there are only some dozens of
// features.
#include <algorithm>
#include <cmath>

#include "nacre/cost/regress/linear_model.h"

namespace nacre {
namespace {

constexpr int kRidgeFolds = 5;
// Eigenvalues that are smaller than this share of the largest eigenvalue count as 0.
constexpr double kDependent = 1e-10;

// Holds a symmetric matrix as vectors · values · vectorsᵀ.
struct Eigen {
  int64_t n = 0;
  std::vector<double> values;
  std::vector<double> vectors;  // n × n numbers; each column belongs to one value
};

// Makes the element (p, q) of the matrix `a` zero by a rotation, and rotates the vectors of `e` in
// the same way.
void rotate(std::vector<double>& a, Eigen& e, int64_t p, int64_t q) {
  const int64_t n = e.n;
  if (a[p * n + q] == 0) return;
  const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
  const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1);
  const double s = t * c;
  const auto turn = [c, s](double& x, double& y) {
    const double old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  };
  for (int64_t k = 0; k < n; ++k) turn(a[k * n + p], a[k * n + q]);
  for (int64_t k = 0; k < n; ++k) turn(a[p * n + k], a[q * n + k]);
  for (int64_t k = 0; k < n; ++k) turn(e.vectors[k * n + p], e.vectors[k * n + q]);
}

Eigen decompose(std::vector<double> a, int64_t n) {
  Eigen e;
  e.n = n;
  e.vectors.assign(n * n, 0.0);
  for (int64_t k = 0; k < n; ++k) e.vectors[k * n + k] = 1;
  constexpr int sweeps = 60;  // about ten are enough; the limit guards against rounding errors
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    double outside = 0;
    double inside = 0;
    for (int64_t p = 0; p < n; ++p) {
      inside += a[p * n + p] * a[p * n + p];
      for (int64_t q = p + 1; q < n; ++q) outside += a[p * n + q] * a[p * n + q];
    }
    if (outside <= 1e-28 * inside) break;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) rotate(a, e, p, q);
    }
  }
  for (int64_t k = 0; k < n; ++k) e.values.push_back(a[k * n + k]);
  return e;
}

// Finds the best weights of standardised features for any penalty.
class PenalisedSolver {
 public:
  explicit PenalisedSolver(const SampleTable& samples)
      : standard_(Standard::of(samples)),
        equations_(NormalEquations::of(standard_.table(samples))),
        eigen_(decompose(equations_.gram, equations_.columns)),
        turned_(equations_.columns, 0.0) {
    const int64_t n = equations_.columns;
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t c = 0; c < n; ++c) turned_[k] += eigen_.vectors[c * n + k] * equations_.right[c];
    }
  }

  std::vector<double> weights(double penalty) const {
    const int64_t n = equations_.columns;
    std::vector<double> w(n, 0.0);
    const double largest = n > 0 ? *std::max_element(eigen_.values.begin(), eigen_.values.end()) : 0;
    for (int64_t k = 0; k < n; ++k) {
      if (eigen_.values[k] <= kDependent * largest) continue;
      const double part = turned_[k] / (eigen_.values[k] + penalty);
      for (int64_t c = 0; c < n; ++c) w[c] += part * eigen_.vectors[c * n + k];
    }
    return w;
  }

  // Returns the sum of squared errors on the samples `test` with the weights for this penalty.
  double error(double penalty, const SampleTable& test) const {
    return squared_error(standard_, weights(penalty), equations_.target_mean, test);
  }

  const Standard& standard() const { return standard_; }
  double target_mean() const { return equations_.target_mean; }

 private:
  Standard standard_;
  NormalEquations equations_;
  Eigen eigen_;
  std::vector<double> turned_;  // the right side in the directions of the eigenvectors
};

class Linear : public LinearModel {
 public:
  Linear() : LinearModel("linear") {}
  void fit(const SampleTable& samples) override {
    const PenalisedSolver solver(samples);
    set(solver.standard(), solver.weights(0), solver.target_mean());
  }
};

class Ridge : public LinearModel {
 public:
  Ridge() : LinearModel("ridge") {}
  void fit(const SampleTable& samples) override {
    // Penalties are multiples of the number of samples, because XᵀX has this number on its
    // diagonal.
    constexpr double multiples[] = {1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 10};
    const std::vector<double> errors =
        cross_errors(samples, kRidgeFolds, [&](const SampleTable& training, const SampleTable& test) {
          const PenalisedSolver solver(training);
          std::vector<double> sums;
          for (const double m : multiples) sums.push_back(solver.error(m * static_cast<double>(training.rows()), test));
          return sums;
        });
    const size_t best = errors.empty() ? 0 : std::min_element(errors.begin(), errors.end()) - errors.begin();
    const PenalisedSolver solver(samples);
    set(solver.standard(), solver.weights(multiples[best] * static_cast<double>(samples.rows())), solver.target_mean());
  }
};

}  // namespace

std::unique_ptr<Regressor> make_linear() { return std::make_unique<Linear>(); }
std::unique_ptr<Regressor> make_ridge() { return std::make_unique<Ridge>(); }

}  // namespace nacre

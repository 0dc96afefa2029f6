// Implements support vector regression with a Gaussian kernel, by coordinate descent on the dual
// problem: minimise ½ βᵀKβ − yᵀβ + ε Σ|β| with |β| ≤ C. The kernel has 1 added, which takes the
// place of the intercept, so that every coordinate can move by itself. Features and targets are
// standardised. The width of the kernel and C are chosen by cross-validation.
#include <algorithm>
#include <cmath>

#include "nacre/cost/regress/regressor.h"

namespace nacre {
namespace {

constexpr int kFolds = 4;
// This is ε, as a share of the targets' deviation. Smaller errors cost nothing.
constexpr double kTolerated = 0.01;
constexpr int kSweeps = 300;

// Holds the parameters that cross-validation chooses. `width` times the number of features is the
// squared distance at which the kernel has fallen to 1/e.
struct Setting {
  double width;
  double most;  // the parameter C: the largest weight of a sample
};
constexpr Setting kSettings[] = {{1, 10}, {4, 10}, {4, 100}, {16, 100}, {16, 1000}};

class Svr : public Regressor {
 public:
  std::string_view name() const override { return "svr"; }
  int64_t columns() const override { return static_cast<int64_t>(standard_.mean.size()); }

  void fit(const SampleTable& samples) override {
    const std::vector<double> errors =
        cross_errors(samples, kFolds, [](const SampleTable& training, const SampleTable& test) {
          std::vector<double> sums;
          for (const Setting& setting : kSettings) {
            Svr trial;
            trial.fit_with(training, setting);
            double sum = 0;
            for (int64_t i = 0; i < test.rows(); ++i) {
              const double rest = trial.predict(test.row(i)) - test.y[i];
              sum += rest * rest;
            }
            sums.push_back(sum);
          }
          return sums;
        });
    const size_t best = errors.empty() ? 0 : std::min_element(errors.begin(), errors.end()) - errors.begin();
    fit_with(samples, kSettings[best]);
  }

  double predict(std::span<const double> features) const override {
    std::vector<double> row(standard_.mean.size());
    standard_.apply(features, row);
    double sum = 0;
    for (size_t i = 0; i < beta_.size(); ++i) sum += beta_[i] * kernel(row, support_.data() + i * row.size());
    return offset_ + factor_ * sum;
  }

  NumberLists state() const override {
    return {{"mean", standard_.mean},
            {"scale", standard_.scale},
            {"support", support_},
            {"beta", beta_},
            {"numbers", {gamma_, offset_, factor_}}};
  }

  void restore(const NumberLists& state, const std::string& where) override {
    standard_.mean = state_list(state, "mean", -1, where);
    const auto n = static_cast<int64_t>(standard_.mean.size());
    standard_.scale = state_list(state, "scale", n, where);
    beta_ = state_list(state, "beta", -1, where);
    support_ = state_list(state, "support", static_cast<int64_t>(beta_.size()) * n, where);
    const std::vector<double>& numbers = state_list(state, "numbers", 3, where);
    gamma_ = numbers[0];
    offset_ = numbers[1];
    factor_ = numbers[2];
  }

 private:
  double kernel(std::span<const double> a, const double* b) const {
    double distance = 0;
    for (size_t c = 0; c < a.size(); ++c) distance += (a[c] - b[c]) * (a[c] - b[c]);
    return std::exp(-gamma_ * distance) + 1;
  }

  void fit_with(const SampleTable& samples, const Setting& setting) {
    standard_ = Standard::of(samples);
    const SampleTable table = standard_.table(samples);
    gamma_ = 1 / (setting.width * std::max<double>(1, static_cast<double>(table.columns)));
    offset_ = mean_of(table.y);
    double squares = 0;
    for (const double y : table.y) squares += (y - offset_) * (y - offset_);
    factor_ = std::sqrt(squares / static_cast<double>(table.rows()));
    beta_.clear();
    support_.clear();
    if (!(factor_ > 0)) return;  // all targets are equal
    const std::vector<double> beta = solve(table, setting.most);
    for (int64_t i = 0; i < table.rows(); ++i) {
      if (beta[i] == 0) continue;
      beta_.push_back(beta[i]);
      support_.insert(support_.end(), table.row(i).begin(), table.row(i).end());
    }
  }

  std::vector<double> solve(const SampleTable& table, double most) const {
    const int64_t n = table.rows();
    std::vector<double> kernels(n * n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        kernels[i * n + j] = kernels[j * n + i] = kernel(table.row(i), table.row(j).data());
      }
    }
    std::vector<double> beta(n, 0.0);
    std::vector<double> rest(n);  // targets that β does not explain: y − Kβ
    for (int64_t i = 0; i < n; ++i) rest[i] = (table.y[i] - offset_) / factor_;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      double moved = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double own = kernels[i * n + i];
        const double wanted = rest[i] + own * beta[i];
        const double size = std::min(std::max(std::abs(wanted) - kTolerated, 0.0) / own, most);
        const double change = (wanted < 0 ? -size : size) - beta[i];
        if (change == 0) continue;
        beta[i] += change;
        for (int64_t j = 0; j < n; ++j) rest[j] -= change * kernels[i * n + j];
        moved = std::max(moved, std::abs(change));
      }
      if (moved < 1e-3) break;
    }
    return beta;
  }

  Standard standard_;
  std::vector<double> support_;  // standardised features of the samples whose β is not 0
  std::vector<double> beta_;
  double gamma_ = 0;
  double offset_ = 0;  // mean and deviation of the targets
  double factor_ = 0;
};

}  // namespace

std::unique_ptr<Regressor> make_svr() { return std::make_unique<Svr>(); }

}  // namespace nacre

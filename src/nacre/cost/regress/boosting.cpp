// Implements AdaBoost.R2 (Drucker, "Improving Regressors using Boosting Techniques", 1997) and
// stochastic gradient boosting (Friedman, 2002).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "nacre/base/philox.h"
#include "nacre/cost/regress/ensemble.h"

namespace nacre {
namespace {

class AdaBoost : public TreeEnsemble {
 public:
  explicit AdaBoost(uint64_t seed) : TreeEnsemble("adaboost"), seed_(seed) {}

  void fit(const SampleTable& samples) override {
    constexpr int trees = 50;
    reset(samples.columns, 0);
    const TreeGrower grower(samples);
    std::vector<double> chances(samples.rows(), 1.0 / static_cast<double>(samples.rows()));
    for (int t = 0; t < trees; ++t) {
      RegressionTree tree =
          grower.grow(samples.y, draw_counts(chances, seed_, static_cast<uint64_t>(t)), {.depth = 10, .leaf = 2});
      if (!take(samples, std::move(tree), chances)) break;
    }
  }

  // Returns the weighted median of the trees' answers for a sample.
  double predict(std::span<const double> features) const override {
    std::vector<std::pair<double, double>> answers;
    double sum = 0;
    for (size_t t = 0; t < trees().size(); ++t) {
      answers.emplace_back(trees()[t].predict(features), weights()[t]);
      sum += weights()[t];
    }
    std::sort(answers.begin(), answers.end());
    double before = 0;
    for (const auto& [answer, weight] : answers) {
      before += weight;
      if (before >= sum / 2) return answer;
    }
    return answers.empty() ? 0 : answers.back().first;
  }

 private:
  // Keeps the tree and raises the chances of samples that the tree got wrong. Returns false if no
  // further tree should be grown, because the loss of this tree is nearly 0 or too large. A tree
  // whose loss is too large is kept only if it is the first one.
  bool take(const SampleTable& samples, RegressionTree tree, std::vector<double>& chances) {
    std::vector<double> errors(samples.rows());
    for (int64_t i = 0; i < samples.rows(); ++i) errors[i] = std::abs(tree.predict(samples.row(i)) - samples.y[i]);
    const double most = *std::max_element(errors.begin(), errors.end());
    double loss = 0;
    for (size_t i = 0; i < errors.size(); ++i) {
      errors[i] = most > 0 ? errors[i] / most : 0;
      loss += chances[i] * errors[i];
    }
    constexpr double smallest = 1e-6;
    if (loss >= 0.5) {
      if (trees().empty()) add(std::move(tree), 1);
      return false;
    }
    const double beta = std::max(loss, smallest) / (1 - loss);
    add(std::move(tree), std::log(1 / beta));
    if (loss < smallest) return false;
    double sum = 0;
    for (size_t i = 0; i < errors.size(); ++i) sum += chances[i] *= std::pow(beta, 1 - errors[i]);
    for (double& chance : chances) chance /= sum;
    return true;
  }

  uint64_t seed_;
};

class GradientBoosting : public TreeEnsemble {
 public:
  explicit GradientBoosting(uint64_t seed) : TreeEnsemble("gradient-boosting"), seed_(seed) {}

  void fit(const SampleTable& samples) override {
    constexpr int trees = 300;
    constexpr double step = 0.06;
    const double base = mean_of(samples.y);
    reset(samples.columns, base);
    const TreeGrower grower(samples);
    std::vector<double> rest = samples.y;
    for (double& r : rest) r -= base;
    TreeOptions how;
    how.depth = 4;
    how.leaf = 3;
    how.features = (samples.columns + 1) / 2;
    for (int t = 0; t < trees; ++t) {
      how.seed = seed_ * 1000003 + static_cast<uint64_t>(t);
      RegressionTree tree = grower.grow(rest, drawn(rest.size(), how.seed), how);
      for (int64_t i = 0; i < samples.rows(); ++i) rest[i] -= step * tree.predict(samples.row(i));
      add(std::move(tree), step);
    }
  }

 private:
  // Returns a weight for each sample, drawn anew: 1 for about 70 % of the samples and 0 for the
  // others. If there are few samples, all of them get weight 1.
  static std::vector<double> drawn(size_t samples, uint64_t seed) {
    constexpr size_t few = 10;
    constexpr double share = 0.7;
    std::vector<double> weights(samples, 1.0);
    if (samples < few) return weights;
    for (size_t i = 0; i < samples; ++i) weights[i] = uniform01(philox(seed, 1, i)[0]) < share ? 1 : 0;
    weights[seed % samples] = 1;
    return weights;
  }

  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Regressor> make_adaboost(uint64_t seed) { return std::make_unique<AdaBoost>(seed); }
std::unique_ptr<Regressor> make_gradient_boosting(uint64_t seed) { return std::make_unique<GradientBoosting>(seed); }

}  // namespace nacre

// LinearModel: a weighted sum of the features, which is what linear, ridge and lasso regression all
// learn.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nacre/cost/regress/regressor.h"

namespace nacre {

class LinearModel : public Regressor {
 public:
  explicit LinearModel(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  double predict(std::span<const double> features) const override;
  int64_t columns() const override { return static_cast<int64_t>(weights_.size()); }
  NumberLists state() const override { return {{"intercept", {intercept_}}, {"weights", weights_}}; }
  void restore(const NumberLists& state, const std::string& where) override;

 protected:
  // Sets the model from weights for standardised features and the mean of the targets.
  void set(const Standard& standard, std::span<const double> weights, double target_mean);

 private:
  std::string_view name_;
  double intercept_ = 0;
  std::vector<double> weights_;
};

// Returns the sum of squared errors on the samples `test`, which are predicted by the weighted sum
// of their standardised features plus `target_mean`.
double squared_error(const Standard& standard, std::span<const double> weights, double target_mean,
                     const SampleTable& test);

// Holds the products XᵀX and Xᵀ(y − mean of y) of standardised samples.
struct NormalEquations {
  int64_t columns = 0;
  std::vector<double> gram;   // XᵀX: columns × columns numbers
  std::vector<double> right;  // Xᵀ(y − mean of y)
  double target_mean = 0;

  static NormalEquations of(const SampleTable& standardised);
};

}  // namespace nacre

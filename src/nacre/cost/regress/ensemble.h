// TreeEnsemble: several regression trees whose answers are combined.
#pragma once

#include <string>
#include <vector>

#include "nacre/cost/regress/regressor.h"
#include "nacre/cost/regress/tree.h"

namespace nacre {

class TreeEnsemble : public Regressor {
 public:
  explicit TreeEnsemble(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  // Returns the base plus the weighted sum of the trees' answers.
  double predict(std::span<const double> features) const override;
  int64_t columns() const override { return columns_; }
  NumberLists state() const override;
  void restore(const NumberLists& state, const std::string& where) override;

 protected:
  void reset(int64_t columns, double base);
  void add(RegressionTree tree, double weight);
  const std::vector<RegressionTree>& trees() const { return trees_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  std::string_view name_;
  int64_t columns_ = 0;
  double base_ = 0;
  std::vector<RegressionTree> trees_;
  std::vector<double> weights_;
};

// Returns how often each of the samples is drawn in as many draws as there are samples, with
// chances in proportion to `chances` (which need not add up to 1).
std::vector<double> draw_counts(std::span<const double> chances, uint64_t seed, uint64_t stream);

}  // namespace nacre

// Implements one tree, trees on bootstrap samples (Breiman, "Bagging Predictors", 1996), and random
// forests (Breiman, "Random Forests", 2001).
#include <algorithm>

#include "nacre/cost/regress/ensemble.h"

namespace nacre {
namespace {

constexpr int64_t kLeaf = 2;

class DecisionTree : public TreeEnsemble {
 public:
  DecisionTree() : TreeEnsemble("decision-tree") {}
  void fit(const SampleTable& samples) override {
    reset(samples.columns, 0);
    const std::vector<double> weights(samples.rows(), 1.0);
    add(TreeGrower(samples).grow(samples.y, weights, {.leaf = kLeaf}), 1);
  }
};

class Bagging : public TreeEnsemble {
 public:
  // Makes a regressor of `trees` trees. Every split chooses from the number of features divided by
  // `divisor`, rounded up.
  Bagging(std::string_view name, int trees, int64_t divisor, uint64_t seed)
      : TreeEnsemble(name), count_(trees), divisor_(divisor), seed_(seed) {}

  void fit(const SampleTable& samples) override {
    reset(samples.columns, 0);
    const TreeGrower grower(samples);
    const std::vector<double> equal(samples.rows(), 1.0);
    TreeOptions how;
    how.leaf = kLeaf;
    how.features = (samples.columns + divisor_ - 1) / divisor_;
    for (int t = 0; t < count_; ++t) {
      how.seed = seed_ * 1000003 + static_cast<uint64_t>(t);
      add(grower.grow(samples.y, draw_counts(equal, seed_, static_cast<uint64_t>(t)), how), 1.0 / count_);
    }
  }

 private:
  int count_;
  int64_t divisor_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Regressor> make_decision_tree() { return std::make_unique<DecisionTree>(); }
std::unique_ptr<Regressor> make_bagging(uint64_t seed) { return std::make_unique<Bagging>("bagging", 50, 1, seed); }
std::unique_ptr<Regressor> make_random_forest(uint64_t seed) {
  return std::make_unique<Bagging>("random-forest", 100, 3, seed);
}

}  // namespace nacre

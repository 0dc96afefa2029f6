#include "nacre/cost/regress/regressor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cost/regress_samples.h"
#include "nacre/base/error.h"
#include "nacre/cost/regress/tree.h"

namespace nacre::test {
namespace {

double error_on(const Regressor& r, const SampleTable& table) {
  double sum = 0;
  for (int64_t i = 0; i < table.rows(); ++i) sum += std::abs(r.predict(table.row(i)) - table.y[i]);
  return sum / static_cast<double>(table.rows());
}

class EveryRegressor : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Regressor> make(uint64_t seed = 1) const { return make_regressor(GetParam(), seed); }
};
INSTANTIATE_TEST_SUITE_P(Names, EveryRegressor, testing::ValuesIn(regressor_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Every regressor does much better than the mean of the targets, on samples that it has not seen.
TEST_P(EveryRegressor, LearnsAStepAndALine) {
  const auto step = [](std::span<const double> x) { return x[0] > 0.5 ? 3.0 : -1.0; };
  const auto line = [](std::span<const double> x) { return 4 * x[0] - 2 * x[1]; };
  for (const bool stepped : {false, true}) {
    const SampleTable train = stepped ? samples_of(300, 3, step, 1) : samples_of(300, 3, line, 1);
    const SampleTable test = stepped ? samples_of(100, 3, step, 2) : samples_of(100, 3, line, 2);
    const std::unique_ptr<Regressor> r = make();
    r->fit(train);
    EXPECT_EQ(r->columns(), 3);
    EXPECT_EQ(r->name(), GetParam());
    double spread = 0;
    for (const double y : test.y) spread += std::abs(y - mean_of(train.y)) / static_cast<double>(test.rows());
    EXPECT_LT(error_on(*r, test), 0.55 * spread) << (stepped ? "step" : "line");
  }
}

TEST_P(EveryRegressor, SameSeedSameBits) {
  const SampleTable table = samples_of(
      80, 5, [](std::span<const double> x) { return x[0] * x[1]; }, 3);
  const std::unique_ptr<Regressor> a = make(7);
  const std::unique_ptr<Regressor> b = make(7);
  a->fit(table);
  b->fit(table);
  EXPECT_EQ(a->state(), b->state());
  b->fit(table);  // a second time
  EXPECT_EQ(a->state(), b->state());
}

TEST_P(EveryRegressor, JsonKeepsTheBits) {
  const SampleTable table = samples_of(
      60, 4, [](std::span<const double> x) { return std::exp(x[0]) / 3; }, 4);
  const std::unique_ptr<Regressor> r = make();
  r->fit(table);
  const std::unique_ptr<Regressor> read = parse_regressor(regressor_json(*r), "test");
  EXPECT_EQ(read->name(), GetParam());
  EXPECT_EQ(read->columns(), 4);
  EXPECT_EQ(read->state(), r->state());
  for (int64_t i = 0; i < table.rows(); ++i) EXPECT_EQ(read->predict(table.row(i)), r->predict(table.row(i)));
}

TEST_P(EveryRegressor, OneSample) {
  SampleTable table;
  table.add(std::vector<double>{1, 2, 3}, 42);
  const std::unique_ptr<Regressor> r = make();
  r->fit(table);
  EXPECT_NEAR(r->predict(table.row(0)), 42, 1e-9);
  EXPECT_TRUE(std::isfinite(r->predict(std::vector<double>{100, -5, 0})));
}

TEST_P(EveryRegressor, ConstantFeatures) {
  SampleTable table;
  for (int i = 0; i < 20; ++i) table.add(std::vector<double>{0.1, 1e9}, i % 2 == 0 ? 1 : 3, i % 4);
  const std::unique_ptr<Regressor> r = make();
  r->fit(table);
  EXPECT_GE(r->predict(table.row(0)), 1 - 1e-9);
  EXPECT_LE(r->predict(table.row(0)), 3 + 1e-9);
}

TEST_P(EveryRegressor, ConstantTargets) {
  const SampleTable table = samples_of(
      30, 4, [](std::span<const double>) { return 5.0; }, 6);
  const std::unique_ptr<Regressor> r = make();
  r->fit(table);
  for (int64_t i = 0; i < table.rows(); ++i) EXPECT_NEAR(r->predict(table.row(i)), 5, 1e-9);
}

TEST_P(EveryRegressor, EqualAndDependentColumns) {
  SampleTable table;
  const SampleTable plain = samples_of(
      100, 2, [](std::span<const double> x) { return 2 * x[0]; }, 8);
  for (int64_t i = 0; i < plain.rows(); ++i) {
    const double a = plain.row(i)[0];
    table.add(std::vector<double>{a, a, 3 * a, a + plain.row(i)[1], plain.row(i)[1]}, plain.y[i]);
  }
  const std::unique_ptr<Regressor> r = make();
  r->fit(table);
  EXPECT_LT(error_on(*r, table), 0.2);
}

TEST_P(EveryRegressor, RefusesAStateThatIsDamaged) {
  const std::unique_ptr<Regressor> r = make();
  r->fit(samples_of(
      30, 3, [](std::span<const double> x) { return x[0]; }, 9));
  NumberLists state = r->state();
  state.erase(state.begin());
  EXPECT_THROW(make()->restore(state, "test"), UserError);
  EXPECT_THROW(parse_regressor("{\"regressor\": \"" + GetParam() + "\", \"state\": {}}", "test"), UserError);
}

TEST(Regressors, NineOfThem) {
  const std::vector<std::string> names = regressor_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 9);
  EXPECT_THROW(make_regressor("linaer"), UserError);
  for (const char* text : {"", "[]", "{}", "{\"regressor\": 1, \"state\": {}}",
                           "{\"regressor\": \"linear\", \"state\": {\"weights\": [\"a\"], \"intercept\": [1]}}"}) {
    EXPECT_THROW(parse_regressor(text, "test"), UserError) << text;
  }
}

TEST(Regressors, ATreeThatLeadsInCirclesIsRefused) {
  const std::unique_ptr<Regressor> tree = make_decision_tree();
  tree->fit(samples_of(
      30, 3, [](std::span<const double> x) { return x[0]; }, 9));
  for (const auto& [list, number] : {std::pair<std::string, double>{"left", 0}, {"feature", 3}, {"right", 1e9}}) {
    NumberLists state = tree->state();
    state[list][0] = number;
    EXPECT_THROW(make_decision_tree()->restore(state, "test"), UserError) << list;
  }
}

TEST(Linear, FindsTheWeights) {
  const auto target = [](std::span<const double> x) { return 1e6 + 3 * x[0] - 5 * x[1] + 0 * x[2]; };
  const SampleTable table = samples_of(50, 3, target, 1);
  for (const char* name : {"linear", "ridge", "lasso"}) {
    const std::unique_ptr<Regressor> r = make_regressor(name);
    r->fit(table);
    const NumberLists state = r->state();
    EXPECT_NEAR(state.at("weights")[0], 3, 0.01) << name;
    EXPECT_NEAR(state.at("weights")[1], -5, 0.01) << name;
    EXPECT_NEAR(state.at("weights")[2], 0, 0.01) << name;
    EXPECT_NEAR(state.at("intercept")[0], 1e6, 0.05) << name;
  }
}

TEST(Lasso, LeavesOutFeaturesThatDoNotMatter) {
  SampleTable table = samples_of(
      60, 30, [](std::span<const double> x) { return 2 * x[4]; }, 2);
  for (size_t i = 0; i < table.y.size(); ++i) table.y[i] += i % 2 == 0 ? 0.05 : -0.05;
  const std::unique_ptr<Regressor> r = make_lasso();
  r->fit(table);
  const std::vector<double> weights = r->state().at("weights");
  EXPECT_NEAR(weights[4], 2, 0.2);
  EXPECT_GT(std::count(weights.begin(), weights.end(), 0.0), 8);
}

TEST(Svr, LearnsACurve) {
  const auto curve = [](std::span<const double> x) { return std::sin(6 * x[0]) + x[1] * x[1]; };
  const std::unique_ptr<Regressor> r = make_svr();
  r->fit(samples_of(200, 2, curve, 1));
  EXPECT_LT(error_on(*r, samples_of(100, 2, curve, 2)), 0.05);
}

TEST(Tree, AnswersWithMeansOfTheSidesOfASplit) {
  SampleTable table;
  for (int i = 0; i < 10; ++i) table.add(std::vector<double>{static_cast<double>(i)}, i < 4 ? 1 : 2);
  const std::vector<double> weights(10, 1.0);
  const RegressionTree tree = TreeGrower(table).grow(table.y, weights, {});
  ASSERT_EQ(tree.nodes().size(), 3);
  EXPECT_EQ(tree.nodes()[0].threshold, 3.5);
  EXPECT_EQ(tree.predict(std::vector<double>{3.5}), 1);
  EXPECT_EQ(tree.predict(std::vector<double>{3.6}), 2);
}

TEST(Tree, LeavesOutSamplesOfWeightZeroAndKeepsLeavesLarge) {
  const SampleTable table = samples_of(
      100, 2, [](std::span<const double> x) { return x[0]; }, 5);
  std::vector<double> weights(100, 1.0);
  for (int i = 0; i < 99; ++i) weights[i] = 0;
  EXPECT_EQ(TreeGrower(table).grow(table.y, weights, {}).predict(table.row(3)), table.y[99]);
  weights.assign(100, 1.0);
  const RegressionTree tree = TreeGrower(table).grow(table.y, weights, {.leaf = 20});
  int leaves = 0;
  for (const TreeNode& node : tree.nodes()) leaves += node.feature < 0 ? 1 : 0;
  EXPECT_GE(leaves, 2);
  EXPECT_LE(leaves, 5);
  EXPECT_EQ(TreeGrower(table).grow(table.y, weights, {.depth = 0}).nodes().size(), 1);
}

TEST(Folds, NeverSplitAGroup) {
  SampleTable table;
  for (int i = 0; i < 40; ++i) table.add(std::vector<double>{1.0}, i, i % 7);
  const std::vector<int> fold = deal_folds(table, 3);
  std::set<int> used(fold.begin(), fold.end());
  EXPECT_EQ(used.size(), 3);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(fold[i], fold[i % 7]);
  const SampleTable test = fold_samples(table, fold, 1, true);
  const SampleTable rest = fold_samples(table, fold, 1, false);
  EXPECT_EQ(test.rows() + rest.rows(), 40);
  for (const int g : test.group) EXPECT_EQ(std::count(rest.group.begin(), rest.group.end(), g), 0);
  // With one group, samples are dealt one by one.
  EXPECT_EQ(deal_folds(samples_of(
                           4, 1, [](std::span<const double>) { return 0.0; }, 1),
                       2),
            (std::vector<int>{0, 1, 0, 1}));
}

}  // namespace
}  // namespace nacre::test

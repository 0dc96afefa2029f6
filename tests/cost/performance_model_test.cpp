#include "nacre/cost/performance_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

const std::vector<FeatureColumn> kColumns = {{"edges", true}, {"skew", false}, {kCountedSeconds, true}};

// Returns steps on made-up graphs whose time is the counted time times a factor of the graph's
// skew.
std::vector<TimedStep> made_up(int graphs, int each) {
  std::vector<TimedStep> steps;
  for (int g = 0; g < graphs; ++g) {
    for (int i = 0; i < each; ++i) {
      const double edges = std::pow(10, 3 + 3 * uniform01(philox(1, g, i)[0]));
      const double skew = uniform01(philox(2, g, 0)[0]);
      const double counted = edges * 1e-8;
      steps.push_back({{edges, skew, counted}, counted * (1 + skew), g});
    }
  }
  return steps;
}

TEST(PerformanceModel, PredictsTimesOverOrdersOfMagnitude) {
  const std::vector<TimedStep> steps = made_up(12, 20);
  for (const std::string& name : regressor_names()) {
    const PerformanceModel model = PerformanceModel::fitted(kColumns, steps, name, StepTarget::ratio);
    for (const TimedStep& step : steps) EXPECT_NEAR(model.predict(step.features) / step.seconds, 1, 0.15) << name;
    // A graph ten times larger than any before it.
    const double far = model.predict(std::vector<double>{1e7, 0.5, 0.1});
    EXPECT_NEAR(far / 0.15, 1, 0.4) << name;
  }
}

TEST(PerformanceModel, JsonKeepsTheBits) {
  const std::vector<TimedStep> steps = made_up(5, 8);
  for (const StepTarget target : step_targets()) {
    const PerformanceModel model = PerformanceModel::fitted(kColumns, steps, "random-forest", target, 3);
    const PerformanceModel read = PerformanceModel::parse(model.json(), "test");
    EXPECT_EQ(read.columns(), kColumns);
    EXPECT_EQ(read.regressor(), "random-forest");
    EXPECT_EQ(read.target(), target);
    for (const TimedStep& step : steps) EXPECT_EQ(read.predict(step.features), model.predict(step.features));
  }
}

TEST(PerformanceModel, RefusesOtherJson) {
  const PerformanceModel model = PerformanceModel::fitted(kColumns, made_up(2, 3), "linear", StepTarget::ratio);
  const std::string good = model.json();
  EXPECT_THROW(PerformanceModel::parse("{}", "test"), UserError);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"ratio\"", "\"rate\""},
                                 {kCountedSeconds, "other"},
                                 {"\"longest\"", "\"largest\""},
                                 {"\"edges\"", "7"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_THROW(PerformanceModel::parse(bad, "test"), UserError) << from;
  }
}

TEST(PerformanceModel, PredictionsArePositive) {
  std::vector<TimedStep> steps;
  for (int i = 1; i <= 5; ++i) steps.push_back({{static_cast<double>(i)}, i * 1.0, i});
  const std::vector<FeatureColumn> columns = {{"edges", true}};
  for (const StepTarget target : {StepTarget::seconds, StepTarget::logarithm}) {
    const PerformanceModel model = PerformanceModel::fitted(columns, steps, "linear", target);
    EXPECT_GT(model.predict(std::vector<double>{-1000}), 0);
    EXPECT_TRUE(std::isfinite(model.predict(std::vector<double>{1e300})));
  }
}

TEST(Comparison, SeesNoGraphTwice) {
  const std::vector<TimedStep> steps = made_up(10, 12);
  const std::vector<RegressorScore> scores = compare_regressors(kColumns, steps, 5);
  EXPECT_EQ(scores.size(), regressor_names().size() * 3);
  for (const RegressorScore& s : scores) {
    EXPECT_EQ(s.by_step.size(), steps.size());
    EXPECT_GT(s.predict_seconds, 0);
  }
  EXPECT_LT(best_score(scores).errors.mape, 0.1);
  // If the time depends on a name of the graph alone, no model can know the time of a new graph.
  std::vector<TimedStep> unknowable;
  for (int g = 0; g < 6; ++g) {
    for (int i = 0; i < 5; ++i) unknowable.push_back({{g * 1.0}, g % 2 == 0 ? 1.0 : 100.0, g});
  }
  EXPECT_GT(best_score(compare_regressors({{"name", false}}, unknowable, 6)).errors.mape, 0.3);
}

TEST(Comparison, Errors) {
  const PredictionErrors e = prediction_errors(std::vector<double>{1, 3}, std::vector<double>{2, 2});
  EXPECT_DOUBLE_EQ(e.mse, 1);
  EXPECT_DOUBLE_EQ(e.mae, 1);
  EXPECT_DOUBLE_EQ(e.mape, 0.5);
}

TEST(Comparison, TheFastestOfTheAccurate) {
  std::vector<RegressorScore> scores(3);
  scores[0] = {.regressor = "a", .errors = {.mape = 0.100}, .predict_seconds = 3};
  scores[1] = {.regressor = "b", .errors = {.mape = 0.104}, .predict_seconds = 1};
  scores[2] = {.regressor = "c", .errors = {.mape = 0.2}, .predict_seconds = 0.1};
  EXPECT_EQ(best_score(scores).regressor, "b");
}

TEST(Comparison, OneStep) {
  const std::vector<TimedStep> one = {{{1, 2, 3}, 0.5, 0}};
  for (const RegressorScore& s : compare_regressors(kColumns, one, 5)) EXPECT_NEAR(s.by_step[0], 0.5, 1e-6);
  EXPECT_TRUE(compare_regressors(kColumns, {}, 5).empty());
}

}  // namespace
}  // namespace nacre

// Compares regressors by cross-validation (Table 7 of the νGNN paper).
#include <algorithm>
#include <chrono>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/cost/performance_model.h"

namespace nacre {
namespace {

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the seconds of one prediction: the median over rounds of the mean over all steps.
double time_predictions(const PerformanceModel& model, std::span<const TimedStep> steps) {
  constexpr int rounds = 7;
  std::vector<double> seconds;
  double sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const double start = clock_seconds();
    for (const TimedStep& step : steps) sum += model.predict(step.features);
    seconds.push_back((clock_seconds() - start) / static_cast<double>(steps.size()));
  }
  NACRE_CHECK(std::isfinite(sum), "a prediction is not finite");
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[rounds / 2];
}

RegressorScore score(const std::vector<FeatureColumn>& columns, std::span<const TimedStep> steps,
                     std::span<const int> fold_of, RegressorScore how, uint64_t seed) {
  how.by_step.assign(steps.size(), 0.0);
  const int folds = 1 + *std::max_element(fold_of.begin(), fold_of.end());
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<TimedStep> seen;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (fold_of[i] != fold) seen.push_back(steps[i]);
    }
    if (seen.empty()) seen.assign(steps.begin(), steps.end());  // there is only one step
    const PerformanceModel model = PerformanceModel::fitted(columns, seen, how.regressor, how.target, seed);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (fold_of[i] == fold) how.by_step[i] = model.predict(steps[i].features);
    }
  }
  std::vector<double> measured;
  for (const TimedStep& step : steps) measured.push_back(step.seconds);
  how.errors = prediction_errors(how.by_step, measured);
  const double start = clock_seconds();
  const PerformanceModel whole = PerformanceModel::fitted(columns, steps, how.regressor, how.target, seed);
  how.fit_seconds = clock_seconds() - start;
  how.predict_seconds = time_predictions(whole, steps);
  return how;
}

}  // namespace

PredictionErrors prediction_errors(std::span<const double> predicted, std::span<const double> measured) {
  NACRE_CHECK(predicted.size() == measured.size(), "there must be one prediction for each measured time");
  PredictionErrors errors;
  const auto n = static_cast<double>(measured.size());
  for (size_t i = 0; i < measured.size(); ++i) {
    const double error = predicted[i] - measured[i];
    errors.mse += error * error / n;
    errors.mae += std::abs(error) / n;
    errors.mape += std::abs(error) / measured[i] / n;
  }
  return errors;
}

std::vector<RegressorScore> compare_regressors(const std::vector<FeatureColumn>& columns,
                                               std::span<const TimedStep> steps, int folds, uint64_t seed) {
  std::vector<RegressorScore> scores;
  if (steps.empty()) return scores;
  SampleTable groups;
  for (const TimedStep& step : steps) groups.add({}, step.seconds, step.group);
  const std::vector<int> fold_of = deal_folds(groups, folds);
  const bool counts =
      std::any_of(columns.begin(), columns.end(), [](const FeatureColumn& c) { return c.name == kCountedSeconds; });
  for (const std::string& name : regressor_names()) {
    for (const StepTarget target : step_targets()) {
      if (target == StepTarget::ratio && !counts) continue;
      scores.push_back(score(columns, steps, fold_of, {.regressor = name, .target = target}, seed));
    }
  }
  return scores;
}

const RegressorScore& best_score(const std::vector<RegressorScore>& scores) {
  NACRE_CHECK(!scores.empty(), "there must be at least one score");
  constexpr double slack = 1.05;
  const auto least = std::min_element(scores.begin(), scores.end(),
                                      [](const auto& a, const auto& b) { return a.errors.mape < b.errors.mape; });
  const RegressorScore* best = &*least;
  for (const RegressorScore& s : scores) {
    if (s.errors.mape <= slack * least->errors.mape && s.predict_seconds < best->predict_seconds) best = &s;
  }
  return *best;
}

}  // namespace nacre

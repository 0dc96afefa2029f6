// PerformanceModel (NU2): predicts how many seconds a training step takes on one device, from
// features of the graph and of the model. It joins a regressor (regress/regressor.h) to a choice of
// what the regressor predicts. This file knows only numbers; features are computed by
// train/step_features.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nacre/cost/regress/regressor.h"

namespace nacre {

// Names a feature. If by_logarithm is true, models that predict logarithms read log(1 + feature)
// instead of the feature.
struct FeatureColumn {
  std::string name;
  bool by_logarithm = false;

  bool operator==(const FeatureColumn&) const = default;
};

// This feature holds the seconds predicted by counted work and nominal rates.
inline constexpr const char* kCountedSeconds = "counted_seconds";

// Holds the features and the time of a training step that was timed.
struct TimedStep {
  std::vector<double> features;
  double seconds = 0;
  int group = 0;  // steps on parts of one graph have the same group
};

// Says what the regressor predicts: the seconds, their logarithm, or the logarithm of the ratio of
// the seconds to the counted seconds. With the ratio, a regressor that cannot extrapolate (a tree)
// still predicts long steps, because counted work does.
enum class StepTarget : uint8_t { seconds, logarithm, ratio };
std::vector<StepTarget> step_targets();
std::string step_target_name(StepTarget target);

class PerformanceModel {
 public:
  // Returns a model that has learned from the steps. There must be at least one step, and all times
  // must be positive. The target `ratio` needs the column kCountedSeconds.
  static PerformanceModel fitted(std::vector<FeatureColumn> columns, std::span<const TimedStep> steps,
                                 const std::string& regressor, StepTarget target, uint64_t seed = 0);

  double predict(std::span<const double> features) const;  // seconds, always positive
  const std::vector<FeatureColumn>& columns() const { return columns_; }
  std::string regressor() const { return std::string(regressor_->name()); }
  StepTarget target() const { return target_; }

  std::string json() const;
  // Returns the performance model that the text holds. Throws a UserError that names `where` if it
  // holds none.
  static PerformanceModel parse(const std::string& json, const std::string& where);

 private:
  // Returns the features as the regressor reads them: with logarithms in the place of some, unless
  // the target is seconds.
  std::vector<double> encode(std::span<const double> features) const;
  double counted(std::span<const double> features) const;

  std::vector<FeatureColumn> columns_;
  StepTarget target_ = StepTarget::seconds;
  // Predictions are kept within these times, which lie far outside the times that were learned.
  double shortest_ = 0, longest_ = 0;
  std::shared_ptr<const Regressor> regressor_;
};

// Holds errors of predictions. MAPE is the mean of |predicted / measured − 1|.
struct PredictionErrors {
  double mse = 0;   // mean squared error in seconds²
  double mae = 0;   // mean absolute error in seconds
  double mape = 0;  // MAPE as a fraction: 0.1 = 10 %
};
PredictionErrors prediction_errors(std::span<const double> predicted, std::span<const double> measured);

struct RegressorScore {
  std::string regressor;
  StepTarget target = StepTarget::seconds;
  PredictionErrors errors;      // errors on graphs that were not learned from
  double predict_seconds = 0;   // seconds of one prediction, the median of several rounds
  double fit_seconds = 0;       // seconds of learning from all steps
  std::vector<double> by_step;  // prediction for each step, from a model that did not see its graph
};

// Compares regressors and targets by cross-validation over graphs: a step is predicted by a model
// that learned from no step of the same group.
std::vector<RegressorScore> compare_regressors(const std::vector<FeatureColumn>& columns,
                                               std::span<const TimedStep> steps, int folds, uint64_t seed = 0);

// Returns the score with the best trade-off of accuracy and time: the one with the fastest
// prediction among those whose MAPE is at most 1.05 times the least MAPE. There must be at least
// one score.
const RegressorScore& best_score(const std::vector<RegressorScore>& scores);

}  // namespace nacre

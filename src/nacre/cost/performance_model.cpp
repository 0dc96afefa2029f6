#include "nacre/cost/performance_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"

namespace nacre {
namespace {

constexpr const char* kModelFormat = "nacre-performance-model";
// Predictions may lie outside the range of the learned times by this factor.
constexpr double kReach = 1000;

constexpr struct {
  StepTarget target;
  const char* name;
} kTargets[] = {{StepTarget::seconds, "seconds"}, {StepTarget::logarithm, "logarithm"}, {StepTarget::ratio, "ratio"}};

int64_t counted_column(const std::vector<FeatureColumn>& columns) {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [](const FeatureColumn& c) { return c.name == kCountedSeconds; });
  return found == columns.end() ? -1 : found - columns.begin();
}

}  // namespace

std::vector<StepTarget> step_targets() {
  std::vector<StepTarget> targets;
  for (const auto& entry : kTargets) targets.push_back(entry.target);
  return targets;
}

std::string step_target_name(StepTarget target) {
  for (const auto& entry : kTargets) {
    if (entry.target == target) return entry.name;
  }
  return "";
}

double PerformanceModel::counted(std::span<const double> features) const {
  constexpr double least = 1e-9;  // a graph without edges has next to no counted work
  return std::max(least, features[counted_column(columns_)]);
}

std::vector<double> PerformanceModel::encode(std::span<const double> features) const {
  NACRE_CHECK(features.size() == columns_.size(), "there must be one number for each feature");
  std::vector<double> row(features.begin(), features.end());
  if (target_ == StepTarget::seconds) return row;
  for (size_t c = 0; c < row.size(); ++c) {
    if (columns_[c].name == kCountedSeconds) {
      row[c] = std::log(counted(features));
    } else if (columns_[c].by_logarithm) {
      row[c] = std::log1p(std::max(0.0, row[c]));
    }
  }
  return row;
}

PerformanceModel PerformanceModel::fitted(std::vector<FeatureColumn> columns, std::span<const TimedStep> steps,
                                          const std::string& regressor, StepTarget target, uint64_t seed) {
  PerformanceModel model;
  model.columns_ = std::move(columns);
  model.target_ = target;
  NACRE_CHECK(!steps.empty(), "a performance model needs timed steps");
  NACRE_CHECK(target != StepTarget::ratio || counted_column(model.columns_) >= 0, "a ratio needs counted seconds");
  SampleTable table;
  model.shortest_ = steps.front().seconds;
  for (const TimedStep& step : steps) {
    NACRE_CHECK(step.seconds > 0 && std::isfinite(step.seconds), "the time of a step is not positive and finite");
    double wanted = step.seconds;
    if (target == StepTarget::logarithm) wanted = std::log(step.seconds);
    if (target == StepTarget::ratio) wanted = std::log(step.seconds / model.counted(step.features));
    table.add(model.encode(step.features), wanted, step.group);
    model.shortest_ = std::min(model.shortest_, step.seconds);
    model.longest_ = std::max(model.longest_, step.seconds);
  }
  model.shortest_ /= kReach;
  model.longest_ *= kReach;
  std::unique_ptr<Regressor> learner = make_regressor(regressor, seed);
  learner->fit(table);
  model.regressor_ = std::move(learner);
  return model;
}

double PerformanceModel::predict(std::span<const double> features) const {
  double seconds = regressor_->predict(encode(features));
  if (target_ != StepTarget::seconds) seconds = std::exp(std::min(seconds, 700.0));
  if (target_ == StepTarget::ratio) seconds *= counted(features);
  return std::clamp(seconds, shortest_, longest_);
}

std::string PerformanceModel::json() const {
  nlohmann::json columns = nlohmann::json::array();
  for (const FeatureColumn& c : columns_) columns.push_back({{"name", c.name}, {"wide", c.by_logarithm}});
  return nlohmann::json({{"format", kModelFormat},
                         {"columns", columns},
                         {"target", step_target_name(target_)},
                         {"shortest", shortest_},
                         {"longest", longest_},
                         {"model", parse_json<nlohmann::json>(regressor_json(*regressor_), "regressor")}})
      .dump();
}

PerformanceModel PerformanceModel::parse(const std::string& json, const std::string& where) {
  const auto object = parse_json<nlohmann::json>(json, where);
  if (!object.is_object() || object.value("format", nlohmann::json()) != kModelFormat) {
    throw UserError(where, "is not a performance model");
  }
  PerformanceModel model;
  try {
    for (const nlohmann::json& c : object.at("columns")) {
      model.columns_.push_back({c.at("name").get<std::string>(), c.at("wide").get<bool>()});
    }
    model.shortest_ = object.at("shortest").get<double>();
    model.longest_ = object.at("longest").get<double>();
    const auto name = object.at("target").get<std::string>();
    const auto* const found =
        std::find_if(std::begin(kTargets), std::end(kTargets), [&](const auto& t) { return name == t.name; });
    if (found == std::end(kTargets)) throw UserError(where, fmt::format("\"{}\" is not a target", name));
    model.target_ = found->target;
    model.regressor_ = parse_regressor(object.at("model").dump(), where);
  } catch (const nlohmann::json::exception& error) {
    throw UserError(where, json_error_text(error.what()));
  }
  if (!(model.shortest_ > 0 && model.shortest_ <= model.longest_)) throw UserError(where, "has impossible times");
  if (model.regressor_->columns() != static_cast<int64_t>(model.columns_.size())) {
    throw UserError(where,
                    fmt::format("is damaged: it names {} features, but its predictor was fitted to {}",
                                model.columns_.size(), model.regressor_->columns()),
                    "learn the model again with nacre bench nugnn --figures t7");
  }
  if (model.target_ == StepTarget::ratio && counted_column(model.columns_) < 0) {
    throw UserError(where, fmt::format("has no feature \"{}\"", kCountedSeconds));
  }
  return model;
}

}  // namespace nacre

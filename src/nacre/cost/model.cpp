#include "nacre/cost/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/cost/fit.h"

namespace nacre {
namespace {

using SamplesByKind = std::map<std::string, std::vector<Timing>>;

SamplesByKind by_kind(const std::vector<Timing>& samples) {
  SamplesByKind kinds;
  for (const Timing& s : samples) kinds[s.work.kind].push_back(s);
  return kinds;
}

double seconds_of(const Coefficients& coefficients, const Work& work) {
  double seconds = 0;
  for (size_t f = 0; f < kFeatures; ++f) seconds += coefficients[f] * work.amount[f];
  return seconds;
}

// Returns the median; NaN if there are no values.
double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Scales the coefficients by the median of measured / predicted over the samples. Returns false if
// the coefficients predict nothing for these samples.
bool scale_to(const std::vector<Timing>& samples, Coefficients& coefficients) {
  std::vector<double> ratios;
  for (const Timing& s : samples) {
    const double ratio = s.seconds / seconds_of(coefficients, s.work);
    if (std::isfinite(ratio) && ratio > 0) ratios.push_back(ratio);
  }
  if (ratios.empty()) return false;
  const double factor = median(std::move(ratios));
  for (double& c : coefficients) c *= factor;
  return true;
}

size_t features_in(const std::vector<Timing>& samples) {
  size_t count = 0;
  for (size_t f = 0; f < kFeatures; ++f) {
    count += std::any_of(samples.begin(), samples.end(), [&](const Timing& s) { return s.work.amount[f] > 0; }) ? 1 : 0;
  }
  return count;
}

}  // namespace

std::string_view feature_name(Feature feature) {
  constexpr std::array<std::string_view, kFeatures> names = {"constant",   "flops",     "vector_flops", "stream_bytes",
                                                             "near_bytes", "far_bytes", "rows",         "edges",
                                                             "tasks",      "steps"};
  const auto at = static_cast<size_t>(feature);
  NACRE_CHECK(at < names.size(), "there is no feature of this number");
  return names[at];
}

CostModel CostModel::uniform(const Coefficients& coefficients) {
  CostModel model;
  model.kinds_[""] = coefficients;
  return model;
}

CostModel CostModel::of_kinds(std::map<std::string, Coefficients> kinds) {
  NACRE_CHECK(kinds.contains(""), "a cost model needs coefficients for kinds it does not name");
  CostModel model;
  model.kinds_ = std::move(kinds);
  return model;
}

CostModel CostModel::fitted(const std::vector<Timing>& samples) {
  CostModel model;
  const std::vector<Timing> usable = usable_samples(samples);
  if (usable.empty()) return model;
  const Coefficients pool = fit(usable);
  model.kinds_[""] = pool;
  for (const auto& [kind, own] : by_kind(usable)) {
    if (kind.empty()) continue;
    Coefficients& coefficients = model.kinds_[kind];
    coefficients = pool;
    const bool few = own.size() < 2 * features_in(own);
    // The coefficients over all samples may be 0 for all features of this kind, so that they cannot
    // be scaled. Then a fit to even a few samples is better.
    if (!few || !scale_to(own, coefficients)) coefficients = fit(own);
  }
  return model;
}

double CostModel::predict(const Work& work) const {
  NACRE_CHECK(!empty(), "a cost model without samples predicts nothing");
  const auto own = kinds_.find(work.kind);
  return seconds_of(own != kinds_.end() ? own->second : kinds_.at(""), work);
}

void CostModel::correct(const std::vector<Timing>& samples) {
  if (empty()) return;
  for (const auto& [kind, own] : by_kind(usable_samples(samples))) {
    const auto known = kinds_.find(kind);
    Coefficients coefficients = known != kinds_.end() ? known->second : kinds_.at("");
    if (scale_to(own, coefficients)) kinds_[kind] = coefficients;
  }
}

void CostModel::scale(Feature feature, double factor) {
  for (auto& [kind, coefficients] : kinds_) coefficients[static_cast<size_t>(feature)] *= factor;
}

double CostModel::median_error(const std::vector<Timing>& samples) const {
  std::vector<double> errors;
  for (const Timing& s : usable_samples(samples)) errors.push_back(std::abs(predict(s.work) / s.seconds - 1));
  return median(std::move(errors));
}

}  // namespace nacre

#include "nacre/cost/mfg_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/cost/fit.h"

namespace nacre {
namespace {

using Terms = std::array<double, MfgCost::kTerms>;

constexpr int kMostDegree = 3;
constexpr std::array<size_t, kMostDegree + 1> kTermsOfDegree = {1, 3, 6, 10};
constexpr size_t kFolds = 5;
// A higher degree is taken only if its error is at most this share of the error of the lower one.
constexpr double kWorthADegree = 0.95;

Terms terms_of(const MfgSize& size, const MfgSize& scale) {
  const double n = size.vertices / scale.vertices, m = size.edges / scale.edges;
  return {1, n, m, n * n, n * m, m * m, n * n * n, n * n * m, n * m * m, m * m * m};
}

double value_of(const Terms& coefficients, const Terms& terms) {
  double sum = 0;
  for (size_t i = 0; i < terms.size(); ++i) sum += coefficients[i] * terms[i];
  return sum;
}

Terms fit_degree(const std::vector<MfgTiming>& timings, const MfgSize& scale, int degree) {
  const size_t count = kTermsOfDegree[static_cast<size_t>(degree)];
  std::vector<std::vector<double>> columns(count);
  for (const MfgTiming& t : timings) {
    const Terms terms = terms_of(t.size, scale);
    for (size_t i = 0; i < count; ++i) columns[i].push_back(terms[i] / t.seconds);
  }
  const std::vector<double> fitted = fit_relative(columns);
  Terms coefficients{};
  std::copy(fitted.begin(), fitted.end(), coefficients.begin());
  return coefficients;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Returns the median error of polynomials of this degree on timings that they were not fitted to.
// The timings are sorted by size and dealt out to the folds in turn, so that every fold has all
// sizes.
double held_out(const std::vector<MfgTiming>& timings, const MfgSize& scale, int degree) {
  const size_t folds = std::min(kFolds, timings.size());
  if (folds < 2) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> errors;
  for (size_t fold = 0; fold < folds; ++fold) {
    std::vector<MfgTiming> others;
    for (size_t i = 0; i < timings.size(); ++i) {
      if (i % folds != fold) others.push_back(timings[i]);
    }
    const Terms coefficients = fit_degree(others, scale, degree);
    for (size_t i = fold; i < timings.size(); i += folds)
      errors.push_back(std::abs(value_of(coefficients, terms_of(timings[i].size, scale)) / timings[i].seconds - 1));
  }
  return median_of(std::move(errors));
}

}  // namespace

MfgCost MfgCost::fitted(std::span<const MfgTiming> timings) {
  std::vector<MfgTiming> usable;
  for (const MfgTiming& t : timings) {
    const bool sized = t.size.vertices >= 0 && t.size.edges >= 0 && std::isfinite(t.size.vertices + t.size.edges);
    if (t.seconds > 0 && std::isfinite(t.seconds) && sized) usable.push_back(t);
  }
  MfgCost cost;
  cost.samples_ = static_cast<int64_t>(usable.size());
  cost.held_out_error_ = std::numeric_limits<double>::quiet_NaN();
  if (usable.empty()) return cost;
  std::stable_sort(usable.begin(), usable.end(), [](const MfgTiming& a, const MfgTiming& b) {
    return a.size.vertices + a.size.edges < b.size.vertices + b.size.edges;
  });
  for (const MfgTiming& t : usable) {
    cost.scale_.vertices = std::max(cost.scale_.vertices, t.size.vertices);
    cost.scale_.edges = std::max(cost.scale_.edges, t.size.edges);
  }
  cost.held_out_error_ = held_out(usable, cost.scale_, 0);
  for (int degree = 1; degree <= kMostDegree && usable.size() >= 4; ++degree) {
    const double error = held_out(usable, cost.scale_, degree);
    if (error > kWorthADegree * cost.held_out_error_) continue;
    cost.held_out_error_ = error;
    cost.degree_ = degree;
  }
  cost.terms_ = fit_degree(usable, cost.scale_, cost.degree_);
  std::vector<double> seconds;
  seconds.reserve(usable.size());
  for (const MfgTiming& t : usable) seconds.push_back(t.seconds);
  cost.typical_seconds_ = median_of(std::move(seconds));
  return cost;
}

double MfgCost::predict(const MfgSize& size) const { return value_of(terms_, terms_of(size, scale_)); }

std::string MfgCost::json() const {
  nlohmann::json j = {{"degree", degree_},
                      {"terms", terms_},
                      {"scale", {scale_.vertices, scale_.edges}},
                      {"samples", samples_},
                      {"typical_seconds", typical_seconds_}};
  if (std::isfinite(held_out_error_)) j["held_out_error"] = held_out_error_;
  return j.dump();
}

MfgCost MfgCost::parse(const std::string& json, const std::string& where) {
  try {
    const auto j = parse_json<nlohmann::json>(json, where);
    MfgCost cost;
    cost.degree_ = j.at("degree").get<int>();
    cost.terms_ = j.at("terms").get<Terms>();
    cost.scale_ = {j.at("scale").at(0).get<double>(), j.at("scale").at(1).get<double>()};
    cost.samples_ = j.at("samples").get<int64_t>();
    cost.typical_seconds_ = j.at("typical_seconds").get<double>();
    cost.held_out_error_ = j.value("held_out_error", std::numeric_limits<double>::quiet_NaN());
    const auto wrong = [](double x) { return !(x >= 0) || !std::isfinite(x); };
    if (std::any_of(cost.terms_.begin(), cost.terms_.end(), wrong) || !(cost.scale_.vertices > 0) ||
        !(cost.scale_.edges > 0))
      throw UserError(where, "has a polynomial with a scale or a coefficient that is not valid");
    return cost;
  } catch (const nlohmann::json::exception&) {
    throw UserError(where, "holds no polynomial of costs");
  }
}

}  // namespace nacre

#include "nacre/cost/regress/samples.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "nacre/base/error.h"

namespace nacre {

void SampleTable::add(std::span<const double> features, double target, int sample_group) {
  if (y.empty()) columns = static_cast<int64_t>(features.size());
  NACRE_CHECK(static_cast<int64_t>(features.size()) == columns,
              "a sample has another number of features than the others");
  x.insert(x.end(), features.begin(), features.end());
  y.push_back(target);
  group.push_back(sample_group);
}

SampleTable SampleTable::select(std::span<const int64_t> samples) const {
  SampleTable selected;
  selected.columns = columns;
  for (const int64_t i : samples) selected.add(row(i), y[i], group[i]);
  return selected;
}

std::vector<int> deal_folds(const SampleTable& samples, int folds) {
  std::vector<int> fold_of(samples.y.size(), 0);
  std::map<int, int64_t> sizes;
  for (const int g : samples.group) ++sizes[g];
  if (sizes.size() <= 1) {
    for (size_t i = 0; i < fold_of.size(); ++i) fold_of[i] = static_cast<int>(i) % folds;
    return fold_of;
  }
  // The largest group that is left goes to the smallest fold.
  std::vector<std::pair<int, int64_t>> groups(sizes.begin(), sizes.end());
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<int64_t> filled(std::min<size_t>(folds, groups.size()), 0);
  std::map<int, int> home;
  for (const auto& [name, size] : groups) {
    const auto smallest = std::min_element(filled.begin(), filled.end());
    *smallest += size;
    home[name] = static_cast<int>(smallest - filled.begin());
  }
  for (size_t i = 0; i < fold_of.size(); ++i) fold_of[i] = home[samples.group[i]];
  return fold_of;
}

SampleTable fold_samples(const SampleTable& samples, std::span<const int> fold_of, int fold, bool inside) {
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < samples.rows(); ++i) {
    if ((fold_of[i] == fold) == inside) chosen.push_back(i);
  }
  return samples.select(chosen);
}

Standard Standard::of(const SampleTable& samples) {
  Standard s;
  const auto n = static_cast<double>(samples.rows());
  s.mean.assign(samples.columns, 0.0);
  s.scale.assign(samples.columns, 0.0);
  for (int64_t c = 0; c < samples.columns; ++c) {
    double& mean = s.mean[c];
    for (int64_t i = 0; i < samples.rows(); ++i) mean += samples.row(i)[c] / n;
    double squares = 0;
    for (int64_t i = 0; i < samples.rows(); ++i) squares += (samples.row(i)[c] - mean) * (samples.row(i)[c] - mean);
    const double deviation = std::sqrt(squares / n);
    // A column whose deviation comes only from rounding errors of the mean counts as constant.
    constexpr double rounding = 1e-12;
    if (deviation > rounding * std::abs(mean)) s.scale[c] = 1 / deviation;
  }
  return s;
}

void Standard::apply(std::span<const double> features, std::span<double> out) const {
  for (size_t c = 0; c < mean.size(); ++c) out[c] = (features[c] - mean[c]) * scale[c];
}

SampleTable Standard::table(const SampleTable& samples) const {
  SampleTable table = samples;
  for (int64_t i = 0; i < samples.rows(); ++i) {
    apply(samples.row(i), {table.x.data() + i * table.columns, static_cast<size_t>(table.columns)});
  }
  return table;
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace nacre

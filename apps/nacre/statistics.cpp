#include "statistics.h"

#include <algorithm>
#include <cmath>

namespace nacre::cli {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

LinearFit fit_line(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sx += x[i];
    sy += y[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - sx / n;
    const double dy = y[i] - sy / n;
    sxx += dx * dx;
    sxy += dx * dy;
    syy += dy * dy;
  }
  if (sxx == 0 || syy == 0) return {};
  const double b = sxy / sxx;
  return {(sy - b * sx) / n, b, sxy * sxy / (sxx * syy)};
}

}  // namespace nacre::cli

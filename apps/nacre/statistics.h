// Figures that sum up repeated measurements.
#pragma once

#include <vector>

namespace nacre::cli {

double median(std::vector<double> values);  // 0 of nothing
double geometric_mean(const std::vector<double>& values);

// y ≈ a + b·x by least squares, and how much of the variance it explains.
struct LinearFit {
  double a = 0, b = 0, r2 = 0;
};
LinearFit fit_line(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace nacre::cli

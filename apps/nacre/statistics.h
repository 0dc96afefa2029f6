// Computes figures that summarise repeated measurements.
#pragma once

#include <vector>

namespace nacre::cli {

double median(std::vector<double> values);  // returns 0 if there are no values
double geometric_mean(const std::vector<double>& values);

// Holds the least-squares fit y ≈ a + b·x, and r2, the share of the variance that it explains.
struct LinearFit {
  double a = 0, b = 0, r2 = 0;
};
LinearFit fit_line(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace nacre::cli

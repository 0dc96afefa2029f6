// Kernels of invented machines, whose times are known sums.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "nacre/cost/model.h"
#include "support/rng.h"

namespace nacre::test {

// Returns amounts as kernels have them: 1 to 1e12, growing together as on graphs of different
// sizes.
inline Work random_work(Rng& rng, const std::string& kind) {
  const double rows = std::pow(10, rng.uniform(1, 6));
  const double edges = rows * rng.uniform(1, 100);
  const double width = std::pow(2, static_cast<double>(2 + rng.below(8)));
  const double far = rng.uniform();
  Work work{.kind = kind};
  work[Feature::constant] = 1;
  work[Feature::flops] = 2 * rows * width * std::pow(2, static_cast<double>(2 + rng.below(8)));
  work[Feature::vector_flops] = edges * width * rng.uniform(0, 4);
  work[Feature::stream_bytes] = 4 * rows * width * rng.uniform(1, 3);
  work[Feature::near_bytes] = 4 * edges * width * (1 - far);
  work[Feature::far_bytes] = 4 * edges * width * far;
  work[Feature::rows] = rows;
  work[Feature::edges] = edges;
  work[Feature::tasks] = std::ceil(edges / std::pow(2, static_cast<double>(rng.below(10))));
  work[Feature::steps] = static_cast<double>(1 + rng.below(50));
  return work;
}

inline double seconds_of(const Coefficients& coefficients, const Work& work) {
  double seconds = 0;
  for (size_t f = 0; f < kFeatures; ++f) seconds += coefficients[f] * work.amount[f];
  return seconds;
}

// Seconds per unit, in the order of Feature, on a machine that could exist.
inline constexpr Coefficients kMachine = {5e-6, 2e-11, 1e-10, 1e-10, 5e-11, 3e-10, 2e-9, 1e-9, 2e-7, 1e-6};

// Returns timings that are off by up to ±noise.
inline std::vector<Timing> random_samples(Rng& rng, const std::string& kind, int count, const Coefficients& machine,
                                          double noise) {
  std::vector<Timing> samples;
  for (int i = 0; i < count; ++i) {
    const Work work = random_work(rng, kind);
    samples.push_back({work, seconds_of(machine, work) * (1 + rng.uniform(-noise, noise))});
  }
  return samples;
}

inline Coefficients scaled(Coefficients coefficients, double factor) {
  for (double& c : coefficients) c *= factor;
  return coefficients;
}

}  // namespace nacre::test

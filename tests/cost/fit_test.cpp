// Tests that coefficients are fitted to timings.
#include "nacre/cost/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "cost/synthetic.h"
#include "support/log_capture.h"

namespace nacre {
namespace {

using test::kMachine;
using test::random_samples;
using test::random_work;
using test::Rng;
using test::seconds_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Timing sample(std::initializer_list<std::pair<Feature, double>> amounts, double seconds) {
  Timing s{.work = {.kind = "k"}, .seconds = seconds};
  for (const auto& [feature, amount] : amounts) s.work[feature] = amount;
  return s;
}

double squared_error(const std::vector<Timing>& samples, const Coefficients& coefficients) {
  double sum = 0;
  for (const Timing& s : samples) sum += std::pow(seconds_of(coefficients, s.work) / s.seconds - 1, 2);
  return sum;
}

// Checks the gradient of the squared error along each feature: it may not be negative, and it may
// be positive only for coefficients of 0.
void expect_optimal(const std::vector<Timing>& samples, const Coefficients& coefficients) {
  for (size_t f = 0; f < kFeatures; ++f) {
    double slope = 0;
    double length = 0;
    for (const Timing& s : samples) {
      const double a = s.work.amount[f] / s.seconds;
      slope += a * (seconds_of(coefficients, s.work) / s.seconds - 1);
      length += a * a;
    }
    if (length == 0) continue;
    slope /= std::sqrt(length * static_cast<double>(samples.size()));
    EXPECT_GE(coefficients[f], 0) << feature_name(static_cast<Feature>(f));
    EXPECT_GT(slope, -1e-8) << feature_name(static_cast<Feature>(f));
    if (coefficients[f] > 0) {
      EXPECT_LT(slope, 1e-8) << feature_name(static_cast<Feature>(f));
    }
  }
}

TEST(Fit, FindsExactCoefficients) {
  Rng rng(1);
  const auto samples = random_samples(rng, "k", 60, kMachine, 0);
  const Coefficients found = fit(samples);
  for (size_t f = 0; f < kFeatures; ++f) {
    EXPECT_NEAR(found[f] / kMachine[f], 1, 1e-6) << feature_name(static_cast<Feature>(f));
  }
}

TEST(Fit, PredictsThroughNoise) {
  // With few samples, some features dominate no kernel, so rare work is predicted less exactly than
  // the rest.
  for (const auto& [count, within] : {std::pair(1000, 1.0), std::pair(100, 0.99)}) {
    int close = 0;
    int all = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Rng rng(seed);
      const Coefficients found = fit(random_samples(rng, "k", count, kMachine, 0.03));
      for (int i = 0; i < 200; ++i, ++all) {
        const Work work = random_work(rng, "k");
        close += std::abs(seconds_of(found, work) / seconds_of(kMachine, work) - 1) < 0.05 ? 1 : 0;
      }
    }
    EXPECT_GE(close, within * all) << count << " samples";
  }
}

TEST(Fit, IsOptimalOnAnyData) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    std::vector<Timing> samples;
    const auto count = 1 + rng.below(40);
    for (int64_t i = 0; i < count; ++i) {
      Timing s{.work = {.kind = "k"}, .seconds = std::pow(10, rng.uniform(-7, 1))};
      for (double& amount : s.work.amount) {
        amount = rng.uniform() < 0.3 ? 0 : std::floor(std::pow(10, rng.uniform(0, 12)));
      }
      samples.push_back(s);
    }
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_optimal(samples, fit(samples));
  }
}

TEST(Fit, NeverNegativeWhereTheDataAsksForIt) {
  // The time falls with the number of rows: 3e-6 · edges − 1e-6 · rows.
  std::vector<Timing> samples;
  for (const double edges : {100.0, 200.0, 400.0}) {
    for (const double rows : {10.0, 50.0, 90.0}) {
      samples.push_back(sample({{Feature::edges, edges}, {Feature::rows, rows}}, 3e-6 * edges - 1e-6 * rows));
    }
  }
  const Coefficients found = fit(samples);
  EXPECT_EQ(found[static_cast<size_t>(Feature::rows)], 0);
  EXPECT_GT(found[static_cast<size_t>(Feature::edges)], 2e-6);
  EXPECT_LT(found[static_cast<size_t>(Feature::edges)], 3e-6);
  expect_optimal(samples, found);
}

TEST(Fit, RelativeErrorsCountAlike) {
  // One huge kernel must not outweigh a small one: both are 10 % off, in opposite directions.
  const std::vector<Timing> samples = {sample({{Feature::flops, 1e3}}, 0.9e-6),
                                       sample({{Feature::flops, 1e12}}, 1.1e3)};
  const double c = fit(samples)[static_cast<size_t>(Feature::flops)];
  EXPECT_NEAR(c, 1e-9, 0.02e-9);
}

TEST(Fit, FeaturesThatGrowTogetherShareTheTime) {
  // Edges are always 8 · rows, so these two columns are proportional; near bytes are proportional
  // up to rounding.
  std::vector<Timing> samples;
  for (int i = 1; i <= 30; ++i) {
    samples.push_back(
        sample({{Feature::rows, i}, {Feature::edges, 8.0 * i}, {Feature::near_bytes, i / 3.0}}, 1e-6 * i));
  }
  const Coefficients found = fit(samples);
  for (const Timing& s : samples) EXPECT_NEAR(seconds_of(found, s.work) / s.seconds, 1, 1e-9);
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](double c) { return c > 0; }), 1);
}

TEST(Fit, FewSamplesStillGiveAnAnswer) {
  EXPECT_EQ(fit({}), Coefficients{});
  EXPECT_EQ(fit({sample({}, 1.0)}), Coefficients{}) << "work of nothing";
  Rng rng(3);
  for (const int count : {1, 2, 5, 9}) {
    const auto samples = random_samples(rng, "k", count, kMachine, 0);
    const Coefficients found = fit(samples);
    EXPECT_LT(squared_error(samples, found), 1e-3) << count;
    expect_optimal(samples, found);
  }
}

TEST(Fit, FeaturesThatNeverOccurGetNothing) {
  const Coefficients found = fit({sample({{Feature::steps, 4}}, 2.0), sample({{Feature::steps, 8}}, 4.0)});
  for (size_t f = 0; f < kFeatures; ++f) {
    if (f == static_cast<size_t>(Feature::steps)) {
      EXPECT_DOUBLE_EQ(found[f], 0.5);
    } else {
      EXPECT_EQ(found[f], 0);
    }
  }
}

TEST(Fit, TheSameEveryTime) {
  Rng rng(4);
  const auto samples = random_samples(rng, "k", 100, kMachine, 0.1);
  EXPECT_EQ(fit(samples), fit(samples));
}

TEST(Fit, BadTimingsAreIgnoredWithAReason) {
  Rng rng(5);
  const auto good = random_samples(rng, "k", 30, kMachine, 0.02);
  auto samples = good;
  for (const double seconds : {0.0, -0.0, -1.0, kNan, kInfinity, -kInfinity}) {
    samples.insert(samples.begin() + 7, sample({{Feature::rows, 5}}, seconds));
  }
  for (const double amount : {-1.0, kNan, kInfinity, 1e308}) {
    samples.push_back(sample({{Feature::constant, 1}, {Feature::rows, amount}}, 1e-6));
  }
  test::LogCapture log;
  const auto usable = usable_samples(samples);
  EXPECT_EQ(
      log.take(),
      "warning: the cost model ignores 10 of 40 timings: 6 have no positive time, 4 have an amount that is negative or "
      "not finite\n");
  EXPECT_EQ(usable.size(), good.size());
  EXPECT_EQ(fit(samples), fit(good));
  EXPECT_NE(log.take(), "");
  EXPECT_EQ(fit({sample({{Feature::rows, 1}}, kNan)}), Coefficients{});
  EXPECT_NE(log.take(), "");
}

}  // namespace
}  // namespace nacre

// Tests the polynomials of operations: they fit what they can express, report the error of timings
// that they were not fitted to, grow beyond the sizes that they have seen, and answer fast.
#include "nacre/cost/mfg_cost.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/cost/operation_costs.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

// Draws sizes like those of batches, which have a few times more edges than vertices.
std::vector<MfgTiming> timings_of(double (*seconds)(double, double), int count, double noise, uint64_t seed) {
  Rng rng(seed);
  std::vector<MfgTiming> timings;
  for (int i = 0; i < count; ++i) {
    const double n = 100 * std::pow(64, rng.uniform()), m = n * rng.uniform(2, 6);
    timings.push_back({{n, m}, seconds(n, m) * (1 + noise * rng.normal())});
  }
  return timings;
}

double linear(double n, double m) { return 2e-5 + 3e-8 * n + 5e-9 * m; }
double cubic(double n, double m) { return 1e-5 + 1e-9 * n + 4e-17 * n * n * m + 1e-17 * m * m * m; }

TEST(MfgCost, FindsThePolynomial) {
  for (double (*seconds)(double, double) : {&linear, &cubic}) {
    const MfgCost cost = MfgCost::fitted(timings_of(seconds, 40, 0, 1));
    EXPECT_LT(cost.held_out_error(), 1e-3);
    EXPECT_EQ(cost.samples(), 40);
    // The sizes lie within those that were learned and up to four times beyond.
    for (const double n : {150.0, 1000.0, 6000.0, 24000.0}) {
      for (const double ratio : {2.0, 4.0, 6.0})
        EXPECT_NEAR(cost.predict({n, ratio * n}) / seconds(n, ratio * n), 1, 0.02) << n << " " << ratio;
    }
  }
  EXPECT_EQ(MfgCost::fitted(timings_of(&linear, 40, 0, 1)).degree(), 1);
  EXPECT_EQ(MfgCost::fitted(timings_of(&cubic, 40, 0, 1)).degree(), 3);
}

TEST(MfgCost, ReportsTheErrorOnWhatItHasNotSeen) {
  const MfgCost cost = MfgCost::fitted(timings_of(&linear, 60, 0.1, 2));
  EXPECT_GT(cost.held_out_error(), 0.03);
  EXPECT_LT(cost.held_out_error(), 0.15);
  std::vector<double> errors;
  for (const MfgTiming& t : timings_of(&linear, 60, 0, 3))
    errors.push_back(std::abs(cost.predict(t.size) / t.seconds - 1));
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[30], 0.05);
  // If times do not depend on the size, the polynomial must be a constant.
  EXPECT_EQ(MfgCost::fitted(timings_of([](double, double) { return 1e-3; }, 20, 0.02, 4)).degree(), 0);
}

TEST(MfgCost, IsPositiveAndGrowsWithTheGraph) {
  const MfgCost cost = MfgCost::fitted(timings_of(&cubic, 12, 0.3, 5));
  double before = 0;
  for (double n = 1; n < 1e6; n *= 2) {
    const double seconds = cost.predict({n, 4 * n});
    EXPECT_GT(seconds, 0);
    EXPECT_GE(seconds, before);
    before = seconds;
  }
}

TEST(MfgCost, TakesFewAndImpossibleTimings) {
  EXPECT_EQ(MfgCost::fitted({}).predict({10, 10}), 0);
  const MfgTiming one[] = {{{100, 300}, 0.5}};
  EXPECT_NEAR(MfgCost::fitted(one).predict({100, 300}), 0.5, 1e-12);
  const MfgTiming bad[] = {
      {{100, 300}, 0.5}, {{100, 300}, -1}, {{100, 300}, std::nan("")}, {{-1, 3}, 2}, {{1e300, 1e308}, 0}};
  EXPECT_EQ(MfgCost::fitted(bad).samples(), 1);
}

TEST(MfgCost, KeepsItsBitsAsJson) {
  const MfgCost cost = MfgCost::fitted(timings_of(&cubic, 30, 0.05, 6));
  const MfgCost read = MfgCost::parse(cost.json(), "test");
  EXPECT_EQ(read.predict({777, 3333}), cost.predict({777, 3333}));
  EXPECT_EQ(read.held_out_error(), cost.held_out_error());
  EXPECT_EQ(read.json(), cost.json());
  EXPECT_THROW(MfgCost::parse("{}", "test"), UserError);
  EXPECT_THROW(MfgCost::parse("[1]", "test"), UserError);
}

std::vector<TimedOperation> timed_operations() {
  std::vector<TimedOperation> timings;
  for (int layer = 0; layer < 2; ++layer) {
    int batch = 0;
    for (const MfgTiming& t : timings_of(&linear, 30, 0.02, 7)) {
      timings.push_back({{"cpu", "sample", layer, ""}, t, batch});
      timings.push_back({{"cpu", "combine", layer, "plan"}, {t.size, 2 * t.seconds}, batch++});
    }
  }
  for (double bytes = 1024; bytes < 1e8; bytes *= 2)
    timings.push_back({{"gpu", "transfer", 0, ""}, {{bytes, 0}, 1e-5 + bytes / 1e10}, 0});
  return timings;
}

TEST(OperationCosts, AnswerForEveryOperation) {
  OperationCosts costs = OperationCosts::fitted(timed_operations());
  EXPECT_EQ(costs.all().size(), 5U);
  EXPECT_NEAR(costs.predict({"cpu", "combine", 1, "plan"}, {1000, 4000}) / linear(1000, 4000), 2, 0.1);
  EXPECT_EQ(costs.predict({"cpu", "update", 0, ""}, {1000, 4000}), 0);
  EXPECT_EQ(costs.find({"gpu", "combine", 0, "plan"}), nullptr);
  EXPECT_LT(held_out_batch_error(timed_operations(), "cpu"), 0.05);
  EXPECT_TRUE(std::isnan(held_out_batch_error(timed_operations(), "gpu")));
  // Batches that were computed in another plan lack the times of operations in the plan of the run.
  std::vector<TimedOperation> more = timed_operations();
  for (int batch = 100; batch < 200; ++batch) {
    more.push_back({{"cpu", "bind", 0, ""}, {{1000, 4000}, 1.0 + batch % 9}, batch});
    more.push_back({{"cpu", "combine", 0, "aggregate"}, {{1000, 4000}, 5}, batch});
  }
  EXPECT_LT(held_out_batch_error(more, "cpu"), 0.05);
  costs.set_first_transfer("gpu", 0.1);
  EXPECT_NEAR(costs.transfer("gpu", 1e6, 10), 0.01 + 1e-5 + 1e-4, 1e-5);
  const OperationCosts read = OperationCosts::parse(costs.json(), "test");
  EXPECT_EQ(read.json(), costs.json());
  EXPECT_EQ(read.transfer("gpu", 5e5, 3), costs.transfer("gpu", 5e5, 3));
  EXPECT_THROW(OperationCosts::parse("{\"operations\": 3}", "test"), UserError);
}

// 100 predictions must take at most 5 ms.
TEST(OperationCosts, AnswerFast) {
  const OperationCosts costs = OperationCosts::fitted(timed_operations());
  double best = 1, sum = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i) sum += costs.predict({"cpu", "sample", i % 2, ""}, {1000.0 + i, 4000});
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_GT(sum, 0);
  EXPECT_LT(best, 0.005);
}

}  // namespace
}  // namespace nacre::test

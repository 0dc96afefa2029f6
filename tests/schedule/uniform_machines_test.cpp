// Tests how jobs are shared out over machines of different speeds. Small cases are compared with
// all assignments.
#include "nacre/schedule/epg/uniform_machines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "support/rng.h"

namespace nacre::test {
namespace {

double best_by_trying(std::span<const double> seconds, std::span<const double> speeds) {
  std::vector<double> ends(speeds.size(), 0.0);
  double best = std::numeric_limits<double>::max();
  const std::function<void(size_t)> give = [&](size_t job) {
    if (job == seconds.size()) {
      best = std::min(best, *std::max_element(ends.begin(), ends.end()));
      return;
    }
    for (size_t m = 0; m < speeds.size(); ++m) {
      ends[m] += seconds[job] / speeds[m];
      if (ends[m] < best) give(job + 1);
      ends[m] -= seconds[job] / speeds[m];
    }
  };
  give(0);
  return best;
}

TEST(UniformMachines, AreWithinEpsilonOfTheBestAssignment) {
  Rng rng(5);
  int exact = 0;
  for (int i = 0; i < 1000; ++i) {
    const size_t machines = 1 + rng.below(3), jobs = 1 + rng.below(machines == 3 ? 7 : 9);
    std::vector<double> speeds, seconds;
    for (size_t m = 0; m < machines; ++m) speeds.push_back(rng.uniform(0.3, 8));
    for (size_t j = 0; j < jobs; ++j)
      seconds.push_back(i % 3 == 0 ? 1 + std::floor(rng.uniform(0, 4)) : rng.uniform(0.01, 1));
    const double epsilon = i % 2 == 0 ? 0.2 : 0.01;
    const double best = best_by_trying(seconds, speeds);
    const MachineJobs found = share_jobs(seconds, speeds, epsilon);
    ASSERT_LE(found.makespan, (1 + epsilon) * best * (1 + 1e-12)) << "instance " << i;
    ASSERT_GE(found.makespan, best * (1 - 1e-12)) << "instance " << i;
    ASSERT_LE(least_makespan(seconds, speeds), best * (1 + 1e-12)) << "instance " << i;
    ASSERT_LE(share_jobs_greedily(seconds, speeds).makespan, 2 * best) << "instance " << i;
    exact += found.makespan < best * (1 + 1e-9) ? 1 : 0;
    std::vector<double> ends(machines, 0.0);
    for (size_t j = 0; j < jobs; ++j)
      ends[static_cast<size_t>(found.machine[j])] += seconds[j] / speeds[static_cast<size_t>(found.machine[j])];
    ASSERT_NEAR(*std::max_element(ends.begin(), ends.end()), found.makespan, 1e-9);
  }
  EXPECT_GT(exact, 500);
}

// If all jobs are equal, the greedy assignment is the best one, also for machines that are not free
// at the beginning.
TEST(UniformMachines, EqualJobsAreSharedOutAtBest) {
  Rng rng(9);
  for (int i = 0; i < 300; ++i) {
    const size_t machines = 1 + rng.below(3), jobs = 1 + rng.below(6);
    std::vector<double> speeds, free;
    for (size_t m = 0; m < machines; ++m) {
      speeds.push_back(0.1 + static_cast<double>(rng.below(50)) / 10);
      free.push_back(static_cast<double>(rng.below(40)) / 4);
    }
    const std::vector<double> seconds(jobs, 1.0);
    // The number of jobs of each machine decides when it ends.
    double best = 1e9;
    size_t ways = 1;
    for (size_t j = 0; j < jobs; ++j) ways *= machines;
    for (size_t way = 0; way < ways; ++way) {
      std::vector<double> ends = free;
      for (size_t j = 0, rest = way; j < jobs; ++j, rest /= machines)
        ends[rest % machines] += 1 / speeds[rest % machines];
      best = std::min(best, *std::max_element(ends.begin(), ends.end()));
    }
    const MachineJobs shared = share_jobs_greedily(seconds, speeds, free);
    ASSERT_NEAR(shared.makespan, best, 1e-9) << "instance " << i;
    ASSERT_EQ(shared.ends.size(), machines);
  }
}

TEST(UniformMachines, TakeManyJobsAtOnce) {
  Rng rng(6);
  std::vector<double> seconds(2000);
  for (double& s : seconds) s = rng.uniform(0.5, 1.5);
  const std::vector<double> speeds = {1, 6.5};
  const auto start = std::chrono::steady_clock::now();
  const MachineJobs jobs = share_jobs(seconds, speeds, 0.01);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1);
  EXPECT_LE(jobs.makespan, 1.01 * least_makespan(seconds, speeds));
  EXPECT_THROW(share_jobs(seconds, std::vector<double>(4, 1.0), 0.01), InternalError);
}

TEST(MovingMedian, ForecastsTheMedianOfTheLastValues) {
  MovingMedian median(3);
  EXPECT_EQ(median.forecast(), 0);
  median.observe(5);
  EXPECT_EQ(median.forecast(), 5);
  median.observe(1);
  EXPECT_EQ(median.forecast(), 3);
  median.observe(100);
  EXPECT_EQ(median.forecast(), 5);
  median.observe(2);  // the last three values are 1, 100, 2
  EXPECT_EQ(median.forecast(), 2);
}

}  // namespace
}  // namespace nacre::test

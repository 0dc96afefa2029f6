// Tests of simulated runs: what is counted is what real runs count, and better hardware is not
// slower.
#include "nacre/train/simulate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/fixtures.h"
#include "nacre/cost/nominal.h"
#include "nacre/train/ranked_session.h"
#include "nacre/train/session.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

Hardware cores(int count) {
  Hardware hardware;
  hardware.name = "cores";
  DescribedDevice device;
  device.name = "core";
  device.gpu = false;
  device.count = count;
  device.model = nominal_cpu().model;
  device.cache_bytes = nominal_cpu().cache_bytes;
  hardware.devices = {device};
  hardware.overlap = false;
  return hardware;
}

Hardware cluster(int machines) {
  Hardware hardware = named_hardware("h200x8");
  hardware.machines = machines;
  hardware.devices[0].count = 2;
  return hardware;
}

RunConfig settings(const std::string& model) {
  RunConfig config = small_run(model);
  config.ranks.partition.use_cache = false;
  return config;
}

DataText data_for(const std::string& model) { return {.typed = model == "rgcn"}; }

class Simulated : public testing::TestWithParam<std::string> {};

TEST_P(Simulated, CountsWhatARealRunCounts) {
  const Dataset data = small_data(data_for(GetParam()));
  const std::string ways[] = {"late", "early", "narrow"};
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    RunConfig config = settings(GetParam());
    config.ranks.halo_rows = ways[ranks - 2];
    config.ranks.devices.assign(static_cast<size_t>(ranks), "cpu:1");
    RankedSession real(data, config, {});
    real.start();
    std::vector<int64_t> before;
    for (const RankFigures& rank : real.figures()) before.push_back(rank.sent);
    real.train_step(0, 0.01);
    const std::vector<RankFigures> figures = real.figures();
    config.ranks.devices.clear();
    const SimulatedRun run = Simulator(data, config, cores(4)).run(ranks);
    ASSERT_EQ(run.ranks.size(), figures.size());
    for (int r = 0; r < ranks; ++r) {
      SCOPED_TRACE(r);
      const SimulatedRank& rank = run.ranks[r];
      EXPECT_EQ(rank.rows.own, static_cast<double>(figures[r].vertices));
      EXPECT_EQ(rank.rows.edges, static_cast<double>(figures[r].edges));
      EXPECT_EQ(rank.rows.halo, static_cast<double>(figures[r].halo));
      EXPECT_EQ(rank.received_rows, static_cast<double>(figures[r].received));
      EXPECT_EQ(rank.sent, static_cast<double>(figures[r].sent - before[r]));
      EXPECT_EQ(rank.memory, static_cast<double>(figures[r].device_bytes));
      EXPECT_GT(rank.split.computing, 0);
    }
  }
}

// The bytes that `nacre plan --devices` shows for each choice of rows must be those that a step
// moves.
TEST_P(Simulated, RealRanksMoveWhatTheirPlansSay) {
  const Dataset data = small_data(data_for(GetParam()));
  const int ranks = 3;
  for (const HaloRows way : kAllHaloRows) {
    SCOPED_TRACE(halo_rows_name(way));
    RunConfig config = settings(GetParam());
    config.ranks.devices.assign(ranks, "cpu:1");
    config.ranks.shares = {1, 2, 3};
    config.ranks.halo_rows = halo_rows_name(way);
    RankedSession real(data, config, {});
    std::vector<double> sent, received;
    for (int r = 0; r < ranks; ++r) {
      const Plan& plan = real.rank(r).trainer().plan();
      const std::vector<StepCall> calls = step_calls(plan, rows_of(real.rank(r).part()), r, ranks);
      sent.push_back(0);
      for (const StepCall& call : calls) sent[r] += call.sent;
      received.push_back(received_row_bytes(calls));
    }
    real.start();
    std::vector<int64_t> before;
    for (const RankFigures& rank : real.figures()) before.push_back(rank.sent);
    real.train_step(0, 0.01);
    const std::vector<RankFigures> figures = real.figures();
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(sent[r], static_cast<double>(figures[r].sent - before[r]));
      EXPECT_EQ(received[r], static_cast<double>(figures[r].received));
    }
  }
}

// The predicted time must be that of the plan that `nacre plan --plan off` shows.
TEST_P(Simulated, OneDeviceIsPredictedAsItsPlanIs) {
  const Dataset data = small_data(data_for(GetParam()));
  RunConfig config = settings(GetParam());
  config.plan = "off";
  config.device = "cpu";
  const Session session(data, config);
  double seconds = 0;
  for (const Kernel& kernel : session.plan().kernels) {
    if (!kernel.once)
      seconds +=
          nominal_cpu().model.predict(kernel_work(kernel, session.plan(), session.blocks(), nominal_cpu().cache_bytes));
  }
  const SimulatedRun run = Simulator(data, config, cores(2)).run(1);
  EXPECT_NEAR(run.epoch, seconds, 1e-9 * seconds);
  EXPECT_DOUBLE_EQ(run.efficiency, 1);
}

INSTANTIATE_TEST_SUITE_P(Models, Simulated, testing::Values("gcn", "sage", "gat", "rgcn", "gin"),
                         [](const auto& test) { return test.param; });

TEST(Simulate, BetterHardwareIsNotSlower) {
  const Dataset data = small_data();
  const auto epoch = [&](const Hardware& hardware, bool overlap = true) {
    RunConfig config = settings("gcn");
    config.ranks.overlap = overlap;
    return Simulator(data, config, hardware).run(4).epoch;
  };
  const double usual = epoch(cluster(2));
  EXPECT_GE(epoch(cluster(2), false), usual);  // the second run has no overlap (--no-overlap)
  for (const double factor : {2.0, 16.0}) {
    Hardware hardware = cluster(2);
    hardware.inside.bandwidth *= factor;
    hardware.between.bandwidth *= factor;
    EXPECT_LE(epoch(hardware), usual);
    hardware = cluster(2);
    hardware.inside.latency /= factor;
    hardware.between.latency /= factor;
    EXPECT_LT(epoch(hardware), usual);
    hardware = cluster(2);
    for (const Feature f : {Feature::constant, Feature::flops, Feature::stream_bytes})
      hardware.devices[0].model.scale(f, 1 / factor);
    EXPECT_LT(epoch(hardware), usual);
  }
  Hardware shared = cluster(2);
  shared.devices[0].together = 0.5;  // the devices take memory rates from each other
  EXPECT_GT(epoch(shared), usual);
}

TEST(Simulate, AScaledGraphHasAsManyTimesTheWork) {
  const Dataset data = small_data();
  const SimulatedRun one = Simulator(data, settings("gcn"), cores(2)).run(2);
  const SimulatedRun many = Simulator(data, settings("gcn"), cores(2), 1000).run(2);
  EXPECT_EQ(many.ranks[0].rows.edges, 1000 * one.ranks[0].rows.edges);
  EXPECT_EQ(many.ranks[0].received_rows, 1000 * one.ranks[0].received_rows);
  // The bytes of sums over all ranks do not grow with the graph, nor does the cost of starting a
  // kernel.
  EXPECT_LT(many.ranks[0].received, 1000 * one.ranks[0].received);
  EXPECT_GT(many.epoch, one.epoch);
  EXPECT_LT(many.epoch, 1500 * one.epoch);
  EXPECT_GT(many.ranks[0].memory, 500 * one.ranks[0].memory);
}

TEST(Simulate, MemoryIsALimit) {
  const Dataset data = small_data();
  Hardware hardware = cores(2);
  hardware.devices[0].memory_bytes = 20000;
  size_t dropped = 0;
  for (const char* rows : {"late", "narrow", "early"}) {
    RunConfig config = settings("gcn");
    config.ranks.halo_rows = rows;
    const SimulatedRun run = Simulator(data, config, hardware).run(2);
    EXPECT_FALSE(run.fullest().fits());
    dropped += run.dropped;
  }
  EXPECT_GT(dropped, 0U) << "not every choice has values that can be computed again";
  hardware.devices[0].memory_bytes = 1 << 30;
  EXPECT_TRUE(Simulator(data, settings("gcn"), hardware).run(2).fullest().fits());
}

TEST(Simulate, UnequalDevicesGetUnequalShares) {
  const Dataset data = small_data();
  Hardware hardware = cores(1);
  DescribedDevice slow = hardware.devices[0];
  slow.name = "slow core";
  for (int f = 0; f < kFeatures; ++f) slow.model.scale(static_cast<Feature>(f), 3);
  hardware.devices.push_back(slow);
  const SimulatedRun run = Simulator(data, settings("gcn"), hardware).run(2);
  EXPECT_NEAR(run.ranks[0].share, 0.75, 0.02);
  const SimulatedRun given = Simulator(data, settings("gcn"), hardware).run(2, {1, 1});
  EXPECT_DOUBLE_EQ(given.ranks[0].share, 0.5);
  EXPECT_LE(run.epoch, given.epoch);
}

TEST(Simulate, LeavesOutColumnsAndSums) {
  const Dataset data = small_data();
  for (const Hardware& hardware : {cores(2), cluster(2)}) {
    const SimulatedRun run = Simulator(data, settings("gcn"), hardware).run(2);
    EXPECT_NE(run.travels.find("columns and sums are left out"), std::string::npos) << run.travels;
  }
  for (const std::string rows : {"columns", "sums"}) {
    RunConfig config = settings("gcn");
    config.ranks.halo_rows = rows;
    EXPECT_USER_ERROR(Simulator(data, config, cores(2)), "cannot be simulated yet");
  }
}

TEST(Simulate, RefusesMoreRanksThanThereAreDevices) {
  Simulator simulator(small_data(), settings("gcn"), cores(2));
  EXPECT_USER_ERROR(simulator.run(3), "more than the 2 devices");
  EXPECT_USER_ERROR(named_hardware("h200"), "choose h200x8");
}

}  // namespace
}  // namespace nacre::test

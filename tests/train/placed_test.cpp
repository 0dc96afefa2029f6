// Tests runs whose batches are computed on two places. On the CPU, the run's own back end and the
// host beside it are two virtual devices with weights, gradients and arenas of their own. The
// results are those of the plain run, bit for bit, because both compute the same.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "data/fixtures.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/train/batch_scheduling.h"
#include "train/placed_runs.h"

namespace nacre::test {
namespace {

class PlacedRun : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(2); }
  const TempDir dir_;
};

struct Trained {
  std::string weights;
  double loss = 0;
  ScheduleReport report;
};

Trained trained(const Dataset& data, const RunConfig& config) {
  BatchSession session(data, config);
  session.start();
  const TrainResult result = train(session, {});
  return {weight_bytes(session.parameters()), result.final_loss, session.schedule_report()};
}

TEST_F(PlacedRun, TwoVirtualDevicesGiveTheBitsOfThePlainRun) {
  const Dataset data = small_data();
  for (const std::string what : {"sage", "gcn", "gat", "batch norm", "subgraphs", "adam"}) {
    for (const int staleness : {0, 1, 2}) {
      SCOPED_TRACE(what + " staleness " + std::to_string(staleness));
      RunConfig config = small_batch_run(what == "gcn" || what == "gat" ? what : "sage", 3);
      config.staleness = staleness;
      if (what == "batch norm") config.model.norm = "batch";
      if (what == "subgraphs") config.sampling = {.sampler = "saint-edge", .budget = 9};
      if (what == "adam") config.optimizer = {.name = "adam", .clip_norm = 0.5, .ema = 0.9};
      const Trained want = trained(data, config);
      for (const std::string computed : {"h", "dh", "ddhhd"}) {
        const BatchPlaces places{.drawn = std::string(computed.size(), 'd'), .computed = computed};
        const RunConfig placed = placed_run(data, config, places, dir_.path("plan.json"));
        for (const int threads : {1, 3}) {
          set_num_threads(threads);
          const Trained got = trained(data, placed);
          ASSERT_EQ(got.weights, want.weights) << computed << ", " << threads << " threads";
          ASSERT_EQ(got.loss, want.loss);
          ASSERT_EQ(got.report.places.computed, computed);
          const int64_t steps = got.report.computed_on_host + got.report.computed_on_device;
          int64_t on_host = 0;
          const int64_t batches = steps / 3;
          for (int64_t b = 0; b < batches; ++b) on_host += places.computes_on_host(b) ? 3 : 0;
          ASSERT_EQ(got.report.computed_on_host, on_host);
        }
        set_num_threads(2);
      }
    }
  }
}

// The bill has what the host takes, and only if it computes batches.
TEST_F(PlacedRun, TheBillHasTheHostsBatches) {
  const Dataset data = small_data();
  const RunConfig config = small_batch_run("sage", 3);
  const auto bytes = [&](const std::string& computed) {
    const BatchPlaces places{.drawn = computed, .computed = computed};
    const BatchSession session(data, placed_run(data, config, places, dir_.path("plan.json")));
    int64_t found = 0;
    for (const MemoryItem& item : session.host_memory())
      found += item.what.starts_with("batches of the host") ? item.bytes : 0;
    return found;
  };
  EXPECT_EQ(bytes("ddd"), 0);
  EXPECT_GT(bytes("ddh"), 0);
}

// A run that is continued keeps its places, although the settings name no plan file.
TEST_F(PlacedRun, AStoppedRunContinuesToTheSameBytes) {
  const Dataset data = small_data();
  for (const int staleness : {0, 2}) {
    SCOPED_TRACE(staleness);
    RunConfig config = small_batch_run("sage", 4);
    config.staleness = staleness;
    const std::string folder = dir_.path("run" + std::to_string(staleness));
    const std::string want = trained(data, config).weights;
    const BatchPlaces places{.drawn = "dh", .computed = "hd"};
    RunConfig placed = placed_run(data, config, places, dir_.path("plan.json"));
    {
      int asked = 0;
      BatchSession session(data, placed);
      session.start();
      TrainerOptions options{.run_folder = folder, .checkpoint_every = 1};
      options.interrupted = [&] { return asked++ >= 12; };
      ASSERT_TRUE(train(session, options).interrupted);
    }
    placed.plan = "off";
    BatchSession session(data, placed, {.resumed_plan = folder + "/plan.json"});
    session.start();
    TrainerOptions options{.run_folder = folder, .resume = true, .checkpoint_every = 1};
    options.interrupted = [] { return false; };
    train(session, options);
    EXPECT_EQ(session.plan().places.computed, "hd");
    EXPECT_GT(session.schedule_report().computed_on_host, 0);
    EXPECT_EQ(weight_bytes(session.parameters()), want);
  }
}

// The search runs on measured costs. On the CPU alone, everything is on the device of the run. The
// session that measures gets features that are already stored with 16 bits.
TEST_F(PlacedRun, TheScheduleThatTheSearchFindsIsFollowed) {
  const TempDir cache;
  const char* const before = std::getenv("NACRE_CACHE");
  const std::string kept = before == nullptr ? "" : before;
  setenv("NACRE_CACHE", cache.path("").c_str(), 1);
  const Dataset data = small_data();
  RunConfig config = small_batch_run("sage", 3);
  config.features.type = "bf16";
  config.normalize_features = "row";
  const std::string want = trained(data, config).weights;
  config.deterministic = false;
  {
    BatchSession plain(data, config, {.evaluation = false});
    learn_costs(plain, 0.1);
  }
  config.batch_schedule = "daha";
  BatchSession session(data, config);
  const BatchPlaces& places = session.plan().places;
  EXPECT_EQ(places.computed, std::string(8, 'd'));
  EXPECT_EQ(places.drawn, std::string(8, 'd'));
  EXPECT_GT(places.least, 0);
  EXPECT_GE(places.seconds, places.least * (1 - 1e-9));
  EXPECT_EQ(session.config().loader.group > 0, places.together);
  session.start();
  train(session, {});
  EXPECT_EQ(weight_bytes(session.parameters()), want);
  const ScheduleReport report = session.schedule_report();
  EXPECT_EQ(report.computed_on_device, 24);
  EXPECT_NEAR(report.predicted_epoch, places.seconds * 8, 1e-12);
  if (before == nullptr) {
    unsetenv("NACRE_CACHE");
  } else {
    setenv("NACRE_CACHE", kept.c_str(), 1);
  }
}

TEST_F(PlacedRun, PlacesThatCannotBeAreRefused) {
  const Dataset data = small_data();
  const auto refusal = [&](const RunConfig& config) {
    try {
      BatchSession(data, config, {.evaluation = false});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  RunConfig config = small_batch_run("sage");
  config.batch_schedule = "daha";
  EXPECT_NE(refusal(config).find("--deterministic"), std::string::npos);
  const std::string file = dir_.path("plan.json");
  for (const BatchPlaces& places :
       {BatchPlaces{.drawn = "d", .computed = "dh"}, BatchPlaces{.drawn = "x", .computed = "d"}})
    EXPECT_NE(refusal(placed_run(data, small_batch_run("sage"), places, file)).find("damaged places"),
              std::string::npos);
  config = placed_run(data, small_batch_run("sage"), {.drawn = "dd", .computed = "hd"}, file);
  EXPECT_EQ(refusal(config), "");
  config.features.locality = "2";
  EXPECT_NE(refusal(config).find("--locality"), std::string::npos);
  // Without the schedule, the plan file is only a plan.
  config.features.locality = "off";
  config.batch_schedule = "auto";
  EXPECT_TRUE(BatchSession(data, config).plan().places.empty());
}

}  // namespace
}  // namespace nacre::test

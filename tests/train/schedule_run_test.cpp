// Tests --schedule: runs that follow a schedule have the results of plain runs.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "data/fixtures.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/twin.h"
#include "nacre/schedule/epg/named.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/bill.h"
#include "train/kinds.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

class ScheduleRun : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(2); }
};

RunConfig scheduled_run(const std::string& schedule, int epochs = 6) {
  RunConfig config = small_batch_run("sage", epochs);
  config.batch_schedule = schedule;
  return config;
}

std::string trained(const Dataset& data, const RunConfig& config) {
  BatchSession session(data, config);
  session.start();
  train(session, {});
  return weight_bytes(session.parameters());
}

TEST_F(ScheduleRun, InTurnGivesTheBitsOfThePlainRun) {
  const Dataset rows = small_data(), learned = small_data({.features = false}), kinds = kinds_data();
  for (const std::string what : {"plain", "adaptive", "stale", "subgraphs", "learned", "kinds"}) {
    SCOPED_TRACE(what);
    RunConfig config = scheduled_run("auto");
    if (what == "adaptive") config.shuffle = what;
    if (what == "stale") config.staleness = 2;
    if (what == "subgraphs") config.sampling = {.sampler = "saint-edge", .budget = 9};
    if (what == "learned") config.load.features_file = "learned";
    if (what == "kinds") {
      config = kinds_run("rgcn");
      config.batch_size = 5;
      config.epochs = 5;
    }
    const Dataset& data = what == "learned" ? learned : what == "kinds" ? kinds : rows;
    const std::string want = trained(data, config);
    config.batch_schedule = "in-turn";
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      for (const int ahead : {0, 2}) {
        config.loader.in_flight = ahead;
        EXPECT_EQ(trained(data, config), want) << threads << " threads, " << ahead << " ahead";
      }
    }
    set_num_threads(2);
  }
}

TEST_F(ScheduleRun, AStoppedRunContinuesToTheSameBytes) {
  const TempDir dir;
  const auto run = [&](const std::string& name, const std::string& schedule, bool resume, std::function<bool()> stop) {
    BatchSession session(small_data(), scheduled_run(schedule));
    session.start();
    TrainerOptions options{.run_folder = dir.path(name), .resume = resume, .checkpoint_every = 1};
    options.interrupted = std::move(stop);
    train(session, options);
    return read_bytes(dir.path(name + "/config.json"));
  };
  const auto never = [] { return false; };
  run("whole", "auto", false, never);
  int asked = 0;
  run("stopped", "in-turn", false, [&] { return asked++ >= 12; });
  const auto settings = nlohmann::json::parse(run("stopped", "in-turn", true, never));
  EXPECT_EQ(settings["execution"]["schedule"], "in-turn");
  EXPECT_EQ(read_bytes(dir.path("stopped/model.safetensors")), read_bytes(dir.path("whole/model.safetensors")));
}

// A group has four epochs at most, and the bill has its samples.
TEST_F(ScheduleRun, TheMemoryDecidesHowLargeAGroupIs) {
  int64_t one = 0;  // bytes of a sample
  const Dataset data = make_twin("arxiv@0.02", 1);
  const auto run = [](const std::string& schedule, int epochs) {
    RunConfig config = scheduled_run(schedule, epochs);
    config.batch_size = 256;  // eight batches
    config.sampling.fanout = {10, 5};
    config.loader.in_flight = 2;
    return config;
  };
  const auto group = [&](int epochs, int64_t limit) {
    RunConfig config = run("in-turn", epochs);
    config.memory_limit = limit;
    const BatchSession session(data, config);
    const std::vector<MemoryItem> bill = session.host_memory();
    if (limit > 0) {
      EXPECT_LE(total_bytes(bill), limit);
    }
    const auto samples = std::find_if(bill.begin(), bill.end(),
                                      [](const MemoryItem& item) { return item.what.starts_with("samples of"); });
    EXPECT_NE(samples, bill.end());
    const int64_t batches = session.config().loader.group;
    EXPECT_EQ(samples->bytes % batches, 0);
    one = samples->bytes / batches;
    return batches;
  };
  EXPECT_EQ(group(9, 0), 4 * 8);
  EXPECT_EQ(group(3, 0), 3 * 8);
  RunConfig plain = run("auto", 9);
  plain.memory_limit = int64_t{1} << 40;
  const int64_t needed = total_bytes(BatchSession(data, plain).host_memory());
  // With a limit, evaluation takes a little less.
  EXPECT_NEAR(group(9, needed + 4 * 5 * one), 6, 1);
  EXPECT_NEAR(group(9, needed + 4 * 20 * one), 21, 1);
  EXPECT_EQ(group(9, needed), 1);
}

TEST_F(ScheduleRun, NamesThatCannotRunAreRefused) {
  const auto refusal = [](RunConfig config, bool gpu) {
    try {
      check_batch_schedule(config, gpu);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const ScheduleName& known : schedule_names()) {
    const RunConfig config = scheduled_run(known.name);
    for (const bool gpu : {false, true}) EXPECT_EQ(refusal(config, gpu).empty(), can_follow(known.name, gpu));
  }
  EXPECT_NE(refusal(scheduled_run("bytegnn"), false).find("needs a GPU"), std::string::npos);
  EXPECT_NE(refusal(scheduled_run("fastest"), true).find("not the name"), std::string::npos);
  EXPECT_NE(refusal(scheduled_run("salient"), false).find("needs a GPU"), std::string::npos);
  EXPECT_NE(refusal(scheduled_run("cpu-only"), true).find("--device cpu"), std::string::npos);
  RunConfig config = scheduled_run("in-turn");
  config.features.locality = "auto";
  EXPECT_NE(refusal(config, true).find("--locality"), std::string::npos);
  config = scheduled_run("in-turn");
  config.ranks.devices = {"cpu:1", "cpu:1"};
  EXPECT_NE(refusal(config, false).find("--devices"), std::string::npos);
  EXPECT_THROW(BatchSession(small_data(), scheduled_run("all-gpu")), UserError);
  EXPECT_EQ(trained(small_data(), scheduled_run("cpu-only", 2)), trained(small_data(), scheduled_run("auto", 2)));
}

// config.json has the name of the schedule, and not the options that it settles.
TEST_F(ScheduleRun, OptionsAreSettledAndNotWritten) {
  RunConfig config = scheduled_run("cpu-sample");
  follow_schedule(config);
  EXPECT_EQ(config.sample_on, "host");
  EXPECT_EQ(config.features_on, "host");
  EXPECT_EQ(config.features.host_rows, "copy");
  EXPECT_EQ(config.loader.in_flight, 0);
  const auto execution = nlohmann::json::parse(config_json(config))["execution"];
  EXPECT_EQ(execution["schedule"], "cpu-sample");
  EXPECT_EQ(execution["sample_on"], "auto");
  EXPECT_EQ(execution["features_on"], "auto");
  EXPECT_FALSE(execution.contains("host_rows"));
  EXPECT_TRUE(settles(config, "--prefetch"));
  config = scheduled_run("salient");
  follow_schedule(config);
  EXPECT_EQ(config.loader.in_flight, -1);
  EXPECT_FALSE(settles(config, "--prefetch"));
  config = scheduled_run("all-gpu");
  follow_schedule(config);
  EXPECT_EQ(config.sample_on, "device");
  EXPECT_FALSE(settles(config, "--features-on"));
}

}  // namespace
}  // namespace nacre::test

// Tests mini-batches on a GPU that caches rows with a look-ahead (--cache lookahead): whatever rows
// stay in device memory, training gives the bits of a run whose rows never change, and the rows of
// the host are counted as they are read.
#include <gtest/gtest.h>

#include <numeric>

#include "device/gpu.h"
#include "nacre/base/error.h"
#include "nacre/tier/cached_batches.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/feature_tiers.h"
#include "nacre/train/gpu_device.h"
#include "nacre/train/ranked_batches.h"
#include "train/kinds.h"

namespace nacre::test {
namespace {

constexpr int64_t kStride = 32;  // bytes from one row of seven floats to the next
constexpr int64_t kRows = 60;

class CacheTest : public OnGpu {};

RunConfig cached_run(const std::string& cache, int64_t rows, const std::string& way) {
  RunConfig config = small_run("sage");
  config.device = "cuda";
  config.mode = "minibatch";
  config.plan = "off";
  config.deterministic = true;
  config.batch_size = 4;
  config.sampling.fanout = {2, 2};
  config.features.budget = {rows * kStride};
  config.features.host_rows = way;
  config.features.cache = cache;
  return config;
}

struct Outcome {
  std::string weights;
  RowReads rows;
};

Outcome train_epochs(BatchSession& session, int64_t epochs = 3) {
  session.start();
  session.expect_epochs(epochs);
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    session.begin_epoch(epoch, 0);
    for (int64_t i = 0; i < session.steps_per_epoch(); ++i) session.train_step(step++, 0.01);
    session.evaluate(false);
  }
  return {weight_bytes(session.parameters()), session.rows_read()};
}

Outcome train_epochs(const RunConfig& config) {
  BatchSession session(small_data(), config);
  return train_epochs(session);
}

TEST_F(CacheTest, TheSameBitsWithFewerRowsOfTheHost) {
  for (const int64_t rows : {int64_t{1}, int64_t{13}, int64_t{50}}) {
    const Outcome stays = train_epochs(cached_run("static", rows, "link"));
    std::vector<int64_t> misses;
    for (const char* way : {"link", "copy"}) {
      for (const char* place : {"host", "device"}) {
        for (const int ahead : {-1, 0, 7}) {
          SCOPED_TRACE(std::to_string(rows) + " rows, " + way + ", sampled on the " + place + ", " +
                       std::to_string(ahead) + " ahead");
          RunConfig config = cached_run("lookahead", rows, way);
          config.sample_on = place;
          config.loader.in_flight = ahead;
          BatchSession session(small_data(), config);
          ASSERT_NE(session.cache(), nullptr);
          EXPECT_EQ(session.cache()->seats(), rows);
          EXPECT_TRUE(session.tiers()->lookahead);
          const Outcome got = train_epochs(session);
          EXPECT_EQ(got.weights, stays.weights);
          EXPECT_EQ(got.rows.total(), stays.rows.total());
          EXPECT_EQ(got.rows.batches, stays.rows.batches);
          EXPECT_EQ(got.rows.peer + got.rows.disk, 0);
          misses.push_back(got.rows.host);
          EXPECT_LE(session.device().peak_bytes(), total_bytes(session.memory()) + (8 << 20));
        }
      }
    }
    // The plans depend on the batches alone.
    for (const int64_t each : misses) EXPECT_EQ(each, misses.front());
    EXPECT_LE(misses.front(), stays.rows.host);
    if (rows == 13) {
      EXPECT_LT(static_cast<double>(misses.front()), 0.95 * static_cast<double>(stays.rows.host));
    }
  }
}

// The counts of a run are those of the plans of the same batches.
TEST_F(CacheTest, ForecastsCountWhatEpochsRead) {
  RunConfig config = cached_run("lookahead", 13, "link");
  BatchSession session(small_data(), config);
  const CacheForecast forecast = session.forecast_cache(1000);
  EXPECT_EQ(forecast.batches, session.batches_per_epoch());
  const Outcome got = train_epochs(session, 1);
  EXPECT_EQ(got.rows.host, forecast.misses);
  EXPECT_EQ(got.rows.total(), forecast.rows);
  config.features.cache = "static";
  BatchSession stays(small_data(), config);
  EXPECT_EQ(train_epochs(stays, 1).rows.host, forecast.static_misses);
}

TEST_F(CacheTest, EverySamplerOrderAndKindOfRun) {
  struct Case {
    const char* name;
    void (*change)(RunConfig& config);
  };
  const Case cases[] = {
      {"layer",
       [](RunConfig& c) {
         c.sampling.sampler = "layer", c.sampling.fanout = {12, 12};
       }},
      {"saint-vertex",
       [](RunConfig& c) { c.sampling.sampler = "saint-vertex", c.sampling.fanout = {}, c.sampling.budget = 9; }},
      {"never shuffled", [](RunConfig& c) { c.shuffle = "never"; }},
      {"staleness", [](RunConfig& c) { c.staleness = 2; }},
      {"a part of a GPU", [](RunConfig& c) { c.device = "cuda:0@8"; }},
      {"bf16", [](RunConfig& c) { c.features.type = "bf16", c.features.budget = {13 * 16}; }},
      {"f16", [](RunConfig& c) { c.features.type = "f16", c.features.budget = {13 * 16}; }},
      {"random", [](RunConfig& c) { c.features.placement = "random"; }},
      {"one batch an epoch", [](RunConfig& c) { c.batch_size = 60; }},
      {"plain loader", [](RunConfig& c) { c.loader.relax = c.loader.subtasks = c.loader.stream = false; }},
      {"one thread", [](RunConfig& c) { c.threads = 1; }},
  };
  for (const Case& each : cases) {
    for (const char* way : {"link", "copy"}) {
      SCOPED_TRACE(std::string(each.name) + ", " + way);
      RunConfig config = cached_run("static", 13, way);
      each.change(config);
      const Outcome want = train_epochs(config);
      config.features.cache = "lookahead";
      const Outcome got = train_epochs(config);
      EXPECT_EQ(got.weights, want.weights);
      EXPECT_EQ(got.rows.total(), want.rows.total());
      EXPECT_GT(got.rows.local, 0);
    }
  }
}

// Batches that were drawn, planned and loaded for an epoch that never came leave nothing behind but
// rows that are where the plans of later batches look for them.
TEST_F(CacheTest, EpochsThatAreBrokenOffAndShuffledAnew) {
  for (const char* way : {"link", "copy"}) {
    SCOPED_TRACE(way);
    const auto run = [&](const std::string& cache, bool broken) {
      RunConfig config = cached_run(cache, 13, way);
      config.shuffle = "adaptive";
      BatchSession session(small_data(), config);
      session.start();
      session.expect_epochs(4);
      int64_t step = 0;
      for (int64_t epoch = 0; epoch < 4; ++epoch) {
        for (int round = 0; broken && round < 3; ++round) {
          session.begin_epoch(7 + round, 0);
          session.begin_epoch(epoch, 2);
        }
        if (epoch == 2) session.shuffle_from(2);
        session.begin_epoch(epoch, 0);
        for (int64_t i = 0; i < session.steps_per_epoch(); ++i) session.train_step(step++, 0.01);
      }
      return weight_bytes(session.parameters());
    };
    const std::string want = run("static", false);
    EXPECT_EQ(run("lookahead", false), want);
    EXPECT_EQ(run("lookahead", true), want);
  }
}

TEST_F(CacheTest, SeveralDevices) {
  const auto train = [](const std::string& cache) {
    RunConfig config = cached_run(cache, 13, "auto");
    config.ranks.devices = {"cuda:0@8", "cuda:0@8"};
    RankedBatchSession session(small_data(), config, {});
    session.start();
    session.expect_epochs(3);
    int64_t step = 0;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      session.begin_epoch(epoch, epoch == 1 ? 2 : 0);
      for (int64_t i = epoch == 1 ? 1 : 0; i < session.steps_per_epoch(); ++i) session.train_step(step++, 0.01);
    }
    return std::pair(weight_bytes(session.parameters()), session.own().rows_read());
  };
  const auto [want, plain] = train("static");
  const auto [got, cached] = train("lookahead");
  EXPECT_EQ(got, want);
  EXPECT_EQ(cached.total(), plain.total());
  EXPECT_LT(cached.host, plain.host);
}

TEST_F(CacheTest, IsRefusedWhereItHasNoEffect) {
  const RunConfig good = cached_run("lookahead", 13, "auto");
  const auto refused = [&](const char* what, void (*change)(RunConfig&), const DataText& text = {}) {
    RunConfig config = good;
    change(config);
    EXPECT_THROW(BatchSession(small_data(text), config), UserError) << what;
  };
  refused("unknown", [](RunConfig& c) { c.features.cache = "ahead"; });
  refused("the CPU", [](RunConfig& c) { c.device = "cpu", c.features = {}, c.features.cache = "lookahead"; });
  refused("on the host", [](RunConfig& c) { c.features.budget.clear(), c.features_on = "host"; });
  refused("locality", [](RunConfig& c) { c.features.locality = "4"; });
  refused("in turn", [](RunConfig& c) { c.batch_schedule = "in-turn"; });
  refused("a disk tier", [](RunConfig& c) { c.features = {}, c.features.cache = "lookahead", c.host_budget = 1; });
  refused("learned features",
          [](RunConfig& c) { c.features = {}, c.features.cache = "lookahead", c.load.features_file = "learned"; },
          {.features = false});
  RunConfig kinds = kinds_run("rgcn");
  kinds.mode = "minibatch";
  kinds.device = "cuda";
  kinds.features.cache = "lookahead";
  EXPECT_THROW(BatchSession(kinds_data(), kinds), UserError);
  // All rows fit, which nobody knows before.
  RunConfig large = good;
  large.features.budget.clear();
  BatchSession session(small_data(), large);
  EXPECT_EQ(session.cache(), nullptr);
  EXPECT_NE(session.notes().back().find("changes nothing"), std::string::npos);
}

}  // namespace
}  // namespace nacre::test

// Tests mini-batches on a GPU whose features lie in tiers: wherever the rows lie and however they
// reach the device, training gives the same bits.
#include "nacre/train/feature_tiers.h"

#include <gtest/gtest.h>

#include "device/gpu.h"
#include "nacre/base/error.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/gpu_device.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

constexpr int64_t kStride = 32;  // bytes from one row of seven floats to the next
constexpr int64_t kRows = 60;

class FeatureTiersTest : public OnGpu {};

RunConfig run_on_gpu() {
  RunConfig config = small_run("sage");
  config.device = "cuda";
  config.mode = "minibatch";
  config.plan = "off";
  config.deterministic = true;
  config.batch_size = 7;
  config.sampling.fanout = {3, 3};
  return config;
}

struct Outcome {
  std::string weights;
  RowReads rows;
};

Outcome train_three_epochs(BatchSession& session) {
  session.start();
  session.expect_epochs(3);
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    session.begin_epoch(epoch, 0);
    for (int64_t i = 0; i < session.steps_per_epoch(); ++i) session.train_step(step++, 0.01);
  }
  return {weight_bytes(session.parameters()), session.rows_read()};
}

TEST_F(FeatureTiersTest, EveryBudgetGivesTheSameBits) {
  RunConfig config = run_on_gpu();
  BatchSession plain(small_data(), config);
  EXPECT_EQ(plain.tiers(), nullptr);
  const Outcome want = train_three_epochs(plain);
  EXPECT_EQ(want.rows.local, want.rows.total());
  EXPECT_EQ(want.rows.batches, 15);
  for (const int64_t rows : {int64_t{1}, int64_t{13}, int64_t{50}}) {
    for (const char* way : {"link", "copy"}) {
      for (const char* place : {"host", "device"}) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + way + ", sampled on the " + place);
        config.features.budget = {rows * kStride};
        config.features.host_rows = way;
        config.sample_on = place;
        BatchSession session(small_data(), config);
        ASSERT_NE(session.tiers(), nullptr);
        EXPECT_EQ(session.tiers()->device_rows, rows);
        EXPECT_EQ(session.tiers()->link, std::string(way) == "link");
        const Outcome got = train_three_epochs(session);
        EXPECT_EQ(got.weights, want.weights);
        EXPECT_EQ(got.rows.total(), want.rows.total());
        EXPECT_GT(got.rows.local, 0);
        EXPECT_GT(got.rows.host, 0);
        EXPECT_EQ(got.rows.peer + got.rows.disk, 0);
        // The rows that are read most often are on the device.
        EXPECT_GE(got.rows.local * kRows, got.rows.total() * rows);
        EXPECT_LE(session.device().peak_bytes(), total_bytes(session.memory()) + (8 << 20));
      }
    }
  }
}

TEST_F(FeatureTiersTest, RowsOfTheHostOnly) {
  RunConfig config = run_on_gpu();
  BatchSession plain(small_data(), config);
  const Outcome want = train_three_epochs(plain);
  for (const char* way : {"auto", "link", "copy"}) {
    config.features_on = "host";
    config.features.host_rows = way;
    BatchSession session(small_data(), config);
    EXPECT_EQ(session.tiers()->link, std::string(way) == "link");
    const Outcome got = train_three_epochs(session);
    EXPECT_EQ(got.weights, want.weights) << way;
    EXPECT_EQ(got.rows.host, want.rows.total());
    EXPECT_GT(session.loading_seconds(), 0);
  }
}

// A part of a GPU has one stream, so steps load their own rows.
TEST_F(FeatureTiersTest, OnAPartOfAGpu) {
  RunConfig config = run_on_gpu();
  config.device = "cuda:0@8";
  BatchSession plain(small_data(), config);
  const Outcome want = train_three_epochs(plain);
  for (const char* way : {"link", "copy"}) {
    config.features.budget = {20 * kStride};
    config.features.host_rows = way;
    BatchSession session(small_data(), config);
    EXPECT_EQ(train_three_epochs(session).weights, want.weights) << way;
  }
}

TEST_F(FeatureTiersTest, NarrowRowsOfEveryTier) {
  for (const std::string type : {"bf16", "f16"}) {
    RunConfig config = run_on_gpu();
    config.features.type = type;
    BatchSession whole(small_data(), config);
    ASSERT_NE(whole.tiers(), nullptr);
    EXPECT_EQ(whole.tiers()->device_bytes(), kRows * 16);
    const Outcome want = train_three_epochs(whole);
    for (const char* way : {"link", "copy"}) {
      SCOPED_TRACE(type + ", " + way);
      config.features.budget = {20 * 16};
      config.features.host_rows = way;
      BatchSession session(small_data(), config);
      EXPECT_EQ(session.tiers()->device_rows, 20);
      EXPECT_EQ(train_three_epochs(session).weights, want.weights);
      EXPECT_EQ(session.evaluate(false).test, whole.evaluate(false).test);
    }
  }
}

TEST_F(FeatureTiersTest, EveryMethodOfPlacement) {
  RunConfig config = run_on_gpu();
  BatchSession plain(small_data(), config);
  const std::string want = train_three_epochs(plain).weights;
  config.features.budget = {20 * kStride};
  for (const PlacementMethod& method : placement_methods()) {
    SCOPED_TRACE(method.name);
    config.features.placement = method.name;
    BatchSession session(small_data(), config);
    EXPECT_LE(session.tiers()->device_rows, 20);
    EXPECT_EQ(train_three_epochs(session).weights, want);
  }
}

// With --locality, samples contain rows of the device more often. Two equal runs give equal
// results, however rows reach the device.
TEST_F(FeatureTiersTest, SamplesPreferNearRows) {
  RunConfig config = run_on_gpu();
  config.features.budget = {15 * kStride};
  for (const char* sampler : {"neighbor", "layer"}) {
    SCOPED_TRACE(sampler);
    config.sampling.sampler = sampler;
    config.sampling.fanout.assign(2, std::string(sampler) == "layer" ? 12 : 2);
    config.features.locality = "off";
    BatchSession plain(small_data(), config);
    const Outcome usual = train_three_epochs(plain);
    config.features.locality = "8";
    std::string weights;
    for (const char* way : {"link", "copy"}) {
      config.features.host_rows = way;
      BatchSession near(small_data(), config);
      const Outcome got = train_three_epochs(near);
      EXPECT_GT(got.rows.local * usual.rows.total(), usual.rows.local * got.rows.total() * 1.1);
      if (weights.empty()) weights = got.weights;
      EXPECT_EQ(got.weights, weights);
    }
  }
  config.features.budget.clear();
  EXPECT_THROW(BatchSession(small_data(), config), UserError);
}

TEST_F(FeatureTiersTest, MethodsAreJudged) {
  RunConfig config = run_on_gpu();
  EXPECT_TRUE(BatchSession(small_data(), config).judged_placements().empty());
  config.features.budget = {20 * kStride};
  const std::vector<JudgedPlacement> judged = BatchSession(small_data(), config).judged_placements();
  ASSERT_EQ(judged.size(), placement_methods().size());
  EXPECT_EQ(judged.front().method, "probability");
  for (const JudgedPlacement& each : judged) EXPECT_GE(each.cost, judged.front().cost);
}

TEST_F(FeatureTiersTest, RowsThatAllFitOrAreLearnedHaveNoTiers) {
  RunConfig config = run_on_gpu();
  config.features.budget = {int64_t{1} << 50};  // all rows fit, so less is taken
  EXPECT_EQ(BatchSession(small_data(), config).tiers(), nullptr);
  config.load.features_file = "learned";
  EXPECT_THROW(BatchSession(small_data({.features = false}), config), UserError);
}

// Batches that were prepared and never run leave nothing behind.
TEST_F(FeatureTiersTest, AnEpochThatIsBrokenOff) {
  RunConfig config = run_on_gpu();
  config.features.budget = {20 * kStride};
  config.features.host_rows = "link";
  BatchSession whole(small_data(), config), broken(small_data(), config);
  const Outcome want = train_three_epochs(whole);
  broken.start();
  for (int round = 0; round < 5; ++round) {
    broken.begin_epoch(7 + round, 0);
    broken.begin_epoch(3, 2);
  }
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    broken.begin_epoch(epoch, 0);
    for (int64_t i = 0; i < broken.steps_per_epoch(); ++i) broken.train_step(step++, 0.01);
  }
  EXPECT_EQ(weight_bytes(broken.parameters()), want.weights);
}

}  // namespace
}  // namespace nacre::test

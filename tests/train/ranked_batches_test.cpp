// Mini-batches on several devices: a step is that of the joined batch on one device.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "nacre/data/twin.h"
#include "nacre/train/batch_counts.h"
#include "nacre/train/ranked_batches.h"
#include "support/sanitized.h"
#include "train/kinds.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

using Counts = std::vector<int64_t>;

RunConfig batch_run(const std::string& model, int64_t batch_size) {
  RunConfig config = small_run(model);
  config.mode = "minibatch";
  config.plan = "off";
  config.batch_size = batch_size;
  config.model.dropout = 0;  // a joined batch draws other numbers than its parts
  config.model.attention_dropout = 0;
  config.sampling.fanout = {-1, -1};
  config.deterministic = true;
  return config;
}

// Gives the run one rank for each number; the number says how many batches it computes in a step.
RunConfig with_ranks(RunConfig config, const Counts& counts) {
  config.ranks.devices.assign(counts.size(), "cpu:1");
  config.ranks.shares.assign(counts.begin(), counts.end());
  return config;
}

struct Shown {
  std::vector<double> losses;
  std::vector<float> weights;
  double val = 0;
};

Shown train_epochs(VertexModel& session, int epochs) {
  Shown shown;
  session.start();
  session.expect_epochs(epochs);
  int64_t step = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    session.begin_epoch(epoch, 0);
    for (int64_t i = 0; i < session.steps_per_epoch(); ++i) shown.losses.push_back(session.train_step(step++, 0.01));
  }
  shown.val = session.evaluate(false).val;
  shown.weights.assign(session.parameters().data(), session.parameters().data() + session.parameters().size());
  return shown;
}

void expect_same(const Shown& got, const Shown& want) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-5 * (1 + std::abs(want.losses[i]))) << "loss of step " << i;
  ASSERT_EQ(got.weights.size(), want.weights.size());
  for (size_t i = 0; i < want.weights.size(); ++i) ASSERT_NEAR(got.weights[i], want.weights[i], 2e-4) << "weight " << i;
  EXPECT_NEAR(got.val, want.val, 1e-9);
}

class JoinedBatches : public testing::TestWithParam<const char*> {};

// The small data set has 30 training nodes. With three ranks, the last step of an epoch has batches
// for two of them only, and in some cases a batch that is not full.
TEST_P(JoinedBatches, AreTheStepsOfOneDevice) {
  const std::string model = GetParam();
  const Dataset data = small_data({.typed = model == "rgcn"});
  const std::vector<Counts> all = {{1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {2, 1}, {1, 3}, {2, 0, 1}};
  for (size_t i = 0; i < all.size(); i += sanitized_stride(4)) {
    SCOPED_TRACE(testing::PrintToString(all[i]));
    const int64_t together = std::accumulate(all[i].begin(), all[i].end(), int64_t{0});
    RunConfig config = batch_run(model, 4);
    RankedBatchSession several(data, with_ranks(config, all[i]), {});
    config.batch_size = 4 * together;
    BatchSession one(data, config);
    EXPECT_EQ(several.counts(), all[i]);
    EXPECT_EQ(several.steps_per_epoch(), one.steps_per_epoch());
    expect_same(train_epochs(several, 2), train_epochs(one, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, JoinedBatches, testing::Values("gcn", "sage", "gat", "rgcn", "gin"));

// Each kind of nodes has its own table, and the rows of one of them are learned.
TEST(JoinedBatchesOfKinds, AreTheStepsOfOneDevice) {
  RunConfig config = kinds_run("rgcn");
  config.batch_size = 4;
  config.deterministic = true;
  RankedBatchSession several(kinds_data(), with_ranks(config, {1, 2}), {});
  config.batch_size = 12;
  BatchSession one(kinds_data(), config);
  expect_same(train_epochs(several, 2), train_epochs(one, 2));
}

struct Way {
  const char* name;
  DataText data = {};
  void (*change)(RunConfig&) = [](RunConfig&) {};
};

class JoinedWays : public testing::TestWithParam<Way> {};

TEST_P(JoinedWays, AreTheStepsOfOneDevice) {
  RunConfig config = batch_run("sage", 4);
  GetParam().change(config);
  const Dataset data = small_data(GetParam().data);
  RankedBatchSession several(data, with_ranks(config, {1, 2}), {});
  config.batch_size = 12;
  BatchSession one(data, config);
  expect_same(train_epochs(several, 2), train_epochs(one, 2));
}

INSTANTIATE_TEST_SUITE_P(
    Settings, JoinedWays,
    testing::Values(Way{"clip", {}, [](RunConfig& c) { c.optimizer.clip_norm = 0.05; }},
                    Way{"average", {}, [](RunConfig& c) { c.optimizer.ema = 0.9; }},
                    Way{"class_weights", {}, [](RunConfig& c) { c.class_weights = "1,2,0.5"; }},
                    Way{"many_labels", {.multilabel = true}},
                    Way{"no_prefetch", {}, [](RunConfig& c) { c.loader.in_flight = 0; }},
                    Way{"learned", {.features = false}, [](RunConfig& c) { c.load.features_file = "learned"; }},
                    Way{"weighted", {.weighted = true}}),
    [](const auto& way) { return way.param.name; });

// Ranks whose batches are sampled draw what one device draws for a batch of that number, and the
// dropout of a batch is the same, too. One device that adds up the gradients of three batches is
// therefore the same as three ranks with a batch each.
TEST(RankedBatches, DrawTheSameBatchesOnAnyNumberOfRanks) {
  const Dataset data = small_data();
  for (const std::string sampler : {"neighbor", "layer", "saint-walk"}) {
    SCOPED_TRACE(sampler);
    RunConfig config = small_run("gcn");
    config.mode = "minibatch";
    config.plan = "off";
    config.batch_size = 5;
    config.sampling.sampler = sampler;
    if (sampler == "neighbor") config.sampling.fanout = {2, 2};
    std::vector<Shown> shown;
    for (const Counts& counts : {Counts{3}, Counts{2, 1}, Counts{1, 1, 1}}) {
      RankedBatchSession session(data, with_ranks(config, counts), {});
      shown.push_back(train_epochs(session, 2));
    }
    expect_same(shown[1], shown[0]);
    expect_same(shown[2], shown[0]);
  }
}

TEST(RankedBatches, HaveTheAccuracyOfOneDevice) {
  const Dataset data = make_twin("cora@0.5", 0);
  RunConfig config = batch_run("gcn", 8);
  config.epochs = 30;
  config.optimizer.lr = 0.01;
  RankedBatchSession several(data, with_ranks(config, {1, 1}), {});
  config.batch_size = 16;
  BatchSession one(data, config);
  one.start();
  several.start();
  const TrainResult alone = train(one, {}), together = train(several, {});
  EXPECT_NEAR(together.test_score, alone.test_score, 0.003);
  EXPECT_NEAR(together.final_loss, alone.final_loss, 0.01);
  EXPECT_GT(together.test_score, 0.5);
}

// A checkpoint counts batches, so a run that was stopped in the middle of an epoch goes on with any
// number of ranks: no batch is left out or comes twice. With weights that hardly change, the loss
// of the epoch tells.
TEST(RankedBatches, ContinueOnAnotherNumberOfRanks) {
  const Dataset data = small_data();
  RunConfig config = batch_run("gcn", 5);  // six batches an epoch
  config.optimizer.lr = 1e-12;
  config.epochs = 1;
  const std::string folder = testing::TempDir() + "ranked_batches_resume";
  std::filesystem::remove_all(folder);
  int left = 1;  // the loop asks before the epoch and before each further step
  TrainerOptions options;
  options.run_folder = folder;
  options.interrupted = [&] { return left-- <= 0; };
  {
    RankedBatchSession three(data, with_ranks(config, {1, 1, 1}), {});
    three.start();
    EXPECT_TRUE(train(three, options).interrupted);
  }
  options.interrupted = [] { return false; };
  options.resume = true;
  RankedBatchSession two(data, with_ranks(config, {1, 1}), {});
  two.start();
  const TrainResult rest = train(two, options);
  BatchSession one(data, config);
  one.start();
  EXPECT_NEAR(rest.final_loss, train(one, {}).final_loss, 1e-6);
  std::filesystem::remove_all(folder);
}

TEST(RankedBatches, AreSharedOutBySpeed) {
  EXPECT_EQ(counts_by_speed({1, 1}), (Counts{1, 1}));
  EXPECT_EQ(counts_by_speed({1, 1.4}), (Counts{1, 1}));
  EXPECT_EQ(counts_by_speed({2, 1}), (Counts{2, 1}));
  EXPECT_EQ(counts_by_speed({1, 2, 4}), (Counts{1, 2, 4}));
  EXPECT_EQ(counts_by_speed({0, 3}), (Counts{0, 1}));
  EXPECT_EQ(counts_by_speed({10, 1}), (Counts{10, 1}));
  EXPECT_EQ(counts_of_shares({2, 0, 1}), (Counts{2, 0, 1}));
  EXPECT_THROW(counts_of_shares({0.5, 1}), UserError);
  EXPECT_THROW(counts_of_shares({0, 0}), UserError);
  DeviceSpeed small, large;
  small.cores = small.score = 1;
  large.cores = large.score = 2;
  const std::vector<double> speeds = measured_speeds({small, large, small}, {4, 1, 6});
  EXPECT_DOUBLE_EQ(speeds[0], 0.2);
  EXPECT_DOUBLE_EQ(speeds[1], 1);
  EXPECT_DOUBLE_EQ(speeds[2], 0.2);
  const BatchPart part = batch_part({2, 0, 3}, 2);
  EXPECT_EQ(part.group, 5);
  EXPECT_EQ(part.begin, 2);
  EXPECT_EQ(part.taken(4), 2);
  EXPECT_EQ(part.taken(10), 6);
  EXPECT_EQ(part.number(3), 7);
}

// Devices that differ are timed. Whatever the times are, the run goes on with numbers of batches
// that all ranks know.
TEST(RankedBatches, AreTimedOnDevicesThatDiffer) {
  RunConfig config = batch_run("gcn", 1);
  config.deterministic = false;
  config.ranks.devices = {"cpu:1", "cpu:2"};
  RankedBatchSession session(small_data(), config, {});
  const Shown shown = train_epochs(session, 2);
  EXPECT_GT(session.counts()[0], 0);
  EXPECT_GT(session.counts()[1], 0);
  EXPECT_LT(shown.losses.back(), shown.losses.front());
}

TEST(RankedBatches, ShareTheDataInTheBill) {
  const Dataset data = small_data();
  const RunConfig config = batch_run("gcn", 4);
  const auto bytes_of = [&](const Counts& counts) {
    const RankedBatchSession session(data, with_ranks(config, counts), {});
    return total_bytes(session.host().training);
  };
  const BatchSession one(data, config);
  const int64_t two = bytes_of({1, 1}), three = bytes_of({1, 1, 1});
  EXPECT_GT(three, two);
  EXPECT_LT(three - two, total_bytes(one.host().training) - one.data_bytes() / 2);
}

}  // namespace
}  // namespace nacre::test

// Tests --shuffle: the epoch at which the accuracy curve bends is found, batches are shuffled from
// then on, and a run that was stopped before or after that epoch continues to the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/fixtures.h"
#include "nacre/base/error.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/elbow.h"
#include "nacre/train/ranked_batches.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

int found_at(const std::function<double(int)>& score, int epochs, int every = 1) {
  AccuracyElbow elbow;
  for (int epoch = every; epoch <= epochs; epoch += every) elbow.observe(epoch, score(epoch));
  if (elbow.found()) {
    EXPECT_LT(elbow.epoch, elbow.known);
  }
  return elbow.known;
}

TEST(AccuracyElbow, IsFoundWhereTheCurveBends) {
  // The distance of this curve from its end shrinks by a factor of e every t epochs, so the elbow
  // lies in proportion to t.
  const auto saturating = [](double t) { return [t](int e) { return 0.7 * (1 - std::exp(-e / t)); }; };
  const int fast = found_at(saturating(3), 400), slow = found_at(saturating(12), 400);
  EXPECT_GE(fast, 6);
  EXPECT_LE(fast, 24);
  EXPECT_NEAR(slow, 4 * fast, 6);
  // A straight curve and one that becomes ever steeper have not bent yet.
  EXPECT_EQ(found_at([](int e) { return 0.004 * e; }, 200), -1);
  EXPECT_EQ(found_at([](int e) { return 1e-5 * e * e; }, 200), -1);
  // If the first score is the best one, three more scores show that nothing better follows.
  EXPECT_EQ(found_at([](int) { return 0.9; }, 10), 4);
  EXPECT_EQ(found_at([](int) { return 0.9; }, 40, 5), 20);
  // No elbow is found if all scores are equal to the score before training, or if no score is
  // known.
  EXPECT_EQ(found_at([](int) { return 0.0; }, 50), -1);
  EXPECT_EQ(found_at([](int) { return std::nan(""); }, 50), -1);
}

TEST(AccuracyElbow, IsFoundInANoisyCurveAndStays) {
  AccuracyElbow elbow;
  for (int epoch = 1; epoch <= 60; ++epoch) {
    const double noise = epoch % 3 == 0 ? -0.2 : 0.0;
    elbow.observe(epoch, 0.8 * (1 - std::exp(-epoch / 5.0)) + noise);
  }
  ASSERT_TRUE(elbow.found());
  const int known = elbow.known;
  const size_t points = elbow.curve.size();
  elbow.observe(61, 1.0);
  EXPECT_EQ(elbow.known, known);
  EXPECT_EQ(elbow.curve.size(), points);
  EXPECT_GT(known, 10);
  EXPECT_LT(known, 50);
}

RunConfig shuffled_run(const std::string& shuffle, int epochs) {
  RunConfig config = small_run("sage", epochs);
  config.mode = "minibatch";
  config.plan = "off";
  config.batch_size = 8;
  config.sampling.fanout = {3, 3};
  config.optimizer.lr = 0.05;
  config.deterministic = true;
  config.shuffle = shuffle;
  return config;
}

std::vector<bool> shuffled_epochs(const std::string& folder) {
  std::vector<bool> shuffled;
  std::istringstream text(read_bytes(folder + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);)
    shuffled.push_back(nlohmann::json::parse(line).at("shuffled").get<bool>());
  return shuffled;
}

std::string model_of(const std::string& folder) { return read_bytes(folder + "/model.safetensors"); }

struct Runs {
  TempDir dir;
  std::string path(const std::string& name) { return dir.path(name); }
  void train_in(
      const std::string& name, const RunConfig& config, bool resume = false,
      std::function<bool()> stop = [] { return false; }) {
    BatchSession session(small_data(), config);
    session.start();
    TrainerOptions options{.run_folder = path(name), .resume = resume, .checkpoint_every = 1, .keep = 1000};
    options.interrupted = std::move(stop);
    train(session, options);
  }
};

// If all epochs have the same batches, they differ only in the neighbours that are drawn.
TEST(Shuffle, NeverKeepsTheBatchesAndAlwaysChangesThem) {
  const Dataset data = small_data();
  const auto order_of = [&](const std::string& shuffle) {
    RunConfig config = shuffled_run(shuffle, 2);
    config.sampling.fanout = {-1, -1};
    config.model.dropout = 0;
    // The weights do not change, so the losses of an epoch tell its batches apart.
    config.optimizer.lr = 1e-12;
    BatchSession session(data, config);
    session.start();
    session.expect_epochs(2);
    std::vector<std::vector<double>> losses(2);
    int64_t step = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      session.begin_epoch(epoch, 0);
      for (int64_t i = 0; i < session.steps_per_epoch(); ++i)
        losses[static_cast<size_t>(epoch)].push_back(session.train_step(step++, 1e-12));
    }
    return losses;
  };
  const auto never = order_of("never"), always = order_of("always"), adaptive = order_of("adaptive");
  for (size_t i = 0; i < never[0].size(); ++i) EXPECT_NEAR(never[0][i], never[1][i], 1e-6) << "batch " << i;
  EXPECT_EQ(adaptive, never);
  EXPECT_NE(always[0], never[0]);
  EXPECT_GT(std::abs(always[0][0] - always[1][0]), 1e-4);
}

TEST(Shuffle, AdaptiveBeginsAtTheElbowAndTheMetricsSayWhen) {
  Runs run;
  run.train_in("never", shuffled_run("never", 4));
  EXPECT_EQ(shuffled_epochs(run.path("never")), std::vector<bool>(4, false));
  run.train_in("always", shuffled_run("always", 4));
  EXPECT_EQ(shuffled_epochs(run.path("always")), std::vector<bool>(4, true));
  run.train_in("adaptive", shuffled_run("adaptive", 25));
  const std::vector<bool> epochs = shuffled_epochs(run.path("adaptive"));
  ASSERT_EQ(epochs.size(), 25U);
  EXPECT_FALSE(epochs.front());
  EXPECT_TRUE(epochs.back()) << "the curve of this run has no elbow";
  EXPECT_TRUE(std::is_sorted(epochs.begin(), epochs.end()));
}

// The test stops the run in the middle of an epoch, before and after the elbow.
TEST(Shuffle, AStoppedRunContinuesToTheSameBytes) {
  Runs run;
  const RunConfig config = shuffled_run("adaptive", 25);
  run.train_in("whole", config);
  const std::vector<bool> epochs = shuffled_epochs(run.path("whole"));
  const auto first = static_cast<int>(std::find(epochs.begin(), epochs.end(), true) - epochs.begin());
  ASSERT_LT(first, 24);
  for (const int stop : {2, first, first + 1}) {
    const std::string name = "stopped" + std::to_string(stop);
    int asked = 0;
    // The training loop asks this before each epoch and before each step but the first; that is
    // four times in an epoch.
    run.train_in(name, config, false, [&] { return asked++ >= stop * 4 + 2; });
    run.train_in(name, config, true);
    EXPECT_EQ(model_of(run.path(name)), model_of(run.path("whole"))) << "stopped in epoch " << stop;
    EXPECT_EQ(shuffled_epochs(run.path(name)), epochs);
  }
}

TEST(Shuffle, WorksOnSeveralRanks) {
  Runs run;
  for (const char* shuffle : {"never", "adaptive"}) {
    RunConfig config = shuffled_run(shuffle, 25);
    config.sampling.fanout = {-1, -1};
    config.model.dropout = 0;
    config.batch_size = 4;
    config.ranks.devices = {"cpu:1", "cpu:1"};
    config.ranks.shares = {1, 1};
    RankedBatchSession several(small_data(), config, {});
    several.start();
    const std::string folder = run.path(shuffle);
    const TrainResult together = train(several, {.run_folder = folder});
    config.batch_size = 8;
    config.ranks = {};
    BatchSession one(small_data(), config);
    one.start();
    const TrainResult alone = train(one, {.run_folder = folder + "-one"});
    EXPECT_EQ(shuffled_epochs(folder), shuffled_epochs(folder + "-one"));
    EXPECT_EQ(shuffled_epochs(folder).back(), std::string(shuffle) == "adaptive");
    EXPECT_NEAR(together.final_loss, alone.final_loss, 1e-3);
  }
}

TEST(Shuffle, IsRefusedWhereItCannotWork) {
  RunConfig config = shuffled_run("adaptive", 3);
  config.eval_every = 4;
  EXPECT_THROW(check_training(config), UserError);
  config = shuffled_run("sometimes", 3);
  EXPECT_THROW(check_training(config), UserError);
  config = shuffled_run("adaptive", 3);
  config.host_budget = 1 << 26;
  EXPECT_THROW(BatchSession(small_data(), config), UserError);
}

}  // namespace
}  // namespace nacre::test

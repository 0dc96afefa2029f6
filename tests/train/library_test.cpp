// Tests Nacre as a user's program sees it: one header, callbacks, and nothing printed.
#include "nacre/nacre.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "data/fixtures.h"
#include "support/log_capture.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

std::string printed(const std::function<void()>& work) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  work();
  const std::string out = testing::internal::GetCapturedStdout();
  return out + testing::internal::GetCapturedStderr();
}

TrainResult train_small(const RunConfig& config, const TrainerOptions& options) {
  const auto session = make_session(small_data(), config, {});
  session->start();
  return train(*session, options);
}

class LibraryTest : public testing::Test {
 protected:
  TempDir dir_;
};

TEST_F(LibraryTest, PrintsNothingByItself) {
  const auto work = [&] {
    RunConfig config = small_run("gat", 30);
    config.plan = "auto";
    config.plan_cache = false;
    train_small(config, {.run_folder = dir_.path("full"), .checkpoint_every = 1});
    config.epochs = 35;
    train_small(config, {.run_folder = dir_.path("full"), .resume = true});
    RunConfig batches = small_run("sage", 3);
    batches.mode = "minibatch";
    batches.batch_size = 8;
    train_small(batches, {});
    LoadOptions load;
    load.undirected = true;
    const Dataset twin = load_dataset("twin:cora@0.05", load);
    log_note("warning: printed by nobody");
    EXPECT_GT(twin.num_nodes(), 0);
    EXPECT_THROW(load_dataset("no such file", load), UserError);
  };
  EXPECT_EQ(printed(work), "");
}

TEST_F(LibraryTest, MessagesReachTheSink) {
  const LogCapture log;
  const RunConfig config = small_run("gcn", 2);
  EXPECT_EQ(printed([&] {
              train_small(config, {.run_folder = dir_.path("run"), .checkpoint_every = 1});
              train_small(config, {.run_folder = dir_.path("run"), .resume = true});
            }),
            "");
  EXPECT_NE(log.text().find("resuming after epoch 2"), std::string::npos) << log.text();
}

TEST_F(LibraryTest, ACallbackSeesEveryEpoch) {
  RunConfig config = small_run("gcn", 7);
  config.eval_every = 3;
  std::vector<EpochReport> reports;
  TrainerOptions options;
  options.after_epoch = [&](const EpochReport& report) {
    reports.push_back(report);
    return true;
  };
  const TrainResult result = train_small(config, options);
  EXPECT_FALSE(result.stopped_early);
  EXPECT_EQ(result.epochs, 7);
  ASSERT_EQ(reports.size(), 7u);
  for (size_t i = 0; i < reports.size(); ++i) {
    const bool evaluated = i == 2 || i == 5 || i == 6;
    EXPECT_EQ(reports[i].epoch, static_cast<int>(i) + 1);
    EXPECT_GT(reports[i].loss, 0);
    EXPECT_GT(reports[i].lr, 0);
    EXPECT_EQ(reports[i].evaluated, evaluated) << i;
    EXPECT_EQ(std::isnan(reports[i].scores.val), !evaluated) << i;
  }
  EXPECT_EQ(reports.back().loss, result.final_loss);
  EXPECT_EQ(reports.back().scores.train, result.train_score);
}

TEST_F(LibraryTest, ACallbackStopsLikePatienceDoes) {
  RunConfig config = small_run("gcn", 500);
  config.patience = 3;
  const TrainResult patient = train_small(config, {.run_folder = dir_.path("patience")});
  ASSERT_TRUE(patient.stopped_early);
  config.patience = 0;
  TrainerOptions options{.run_folder = dir_.path("callback")};
  options.after_epoch = [&](const EpochReport& report) { return report.epoch < patient.epochs; };
  const TrainResult told = train_small(config, options);
  EXPECT_TRUE(told.stopped_early);
  EXPECT_FALSE(told.interrupted);
  EXPECT_EQ(told.epochs, patient.epochs);
  EXPECT_EQ(told.best_epoch, patient.best_epoch);
  EXPECT_EQ(told.val_score, patient.val_score);
  EXPECT_EQ(told.test_score, patient.test_score);
  const NamedTensors a = read_trained_model(dir_.path("patience")).read_weights();
  const NamedTensors b = read_trained_model(dir_.path("callback")).read_weights();
  ASSERT_EQ(a.size(), b.size());
  const auto bytes = [](const Tensor& tensor) {
    return std::string(static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
  };
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_EQ(bytes(a[i].second), bytes(b[i].second)) << a[i].first;
  }
}

TEST_F(LibraryTest, AnEpochThatEndsTheRunIsEvaluated) {
  RunConfig config = small_run("gcn", 500);
  config.eval_every = 100;
  TrainerOptions options{.run_folder = dir_.path("run")};
  options.after_epoch = [](const EpochReport& report) { return report.epoch < 4; };
  const TrainResult result = train_small(config, options);
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.best_epoch, 4);
  EXPECT_GE(result.val_score, 0);
  EXPECT_NE(read_bytes(dir_.path("run/metrics.jsonl")).find("\"val\""), std::string::npos);
  options.resume = true;
  options.after_epoch = [](const EpochReport& report) { return report.epoch < 6; };
  EXPECT_EQ(train_small(config, options).epochs, 6) << "a run that was stopped can go on";
}

}  // namespace
}  // namespace nacre::test

// Tests of the loop: resumed runs end like uninterrupted ones, early stopping works, and the right
// weights are kept at the end.
#include "nacre/train/trainer.h"
#include "nacre/train/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

namespace fs = std::filesystem;

class TrainerTest : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(2); }

  TrainResult run(const RunConfig& config, const std::string& folder, bool resume = false, const DataText& data = {}) {
    Session session(small_data(data), config);
    session.start();
    return train(session,
                 {.run_folder = folder.empty() ? "" : dir_.path(folder), .resume = resume, .checkpoint_every = 1});
  }
  std::string model(const std::string& folder) { return read_bytes(dir_.path(folder + "/model.safetensors")); }
  std::vector<std::string> metric_lines(const std::string& folder) {
    std::istringstream text(read_bytes(dir_.path(folder + "/metrics.jsonl")));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  // Forgets what lies after `epoch`, as if the run had been killed there.
  void rewind(const std::string& from, const std::string& to, int epoch) {
    fs::copy(dir_.path(from), dir_.path(to), fs::copy_options::recursive);
    fs::remove(dir_.path(to + "/model.safetensors"));
    for (const auto& entry : fs::directory_iterator(dir_.path(to))) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("epoch-") && std::stoi(name.substr(6)) > epoch) fs::remove_all(entry.path());
    }
  }

  TempDir dir_;
};

TEST_F(TrainerTest, ResumedFromAnyEpochEndsTheSame) {
  struct Case {
    std::string model;
    OptimizerOptions optimizer;
    ScheduleOptions schedule;
    std::string norm;
  };
  const std::vector<Case> cases = {
      {"gcn", {.name = "adam", .weight_decay = 5e-4}, {}, "batch"},
      {"gat", {.name = "adamw", .weight_decay = 0.01}, {.name = "cosine", .warmup = 2}, "layer"},
      {"sage", {.name = "sgd", .lr = 0.1, .momentum = 0.9}, {.name = "step", .step_size = 2}, "batch"},
      {"rgcn", {.name = "sgd", .lr = 0.1}, {.name = "linear"}, "none"},
      {"gin", {}, {}, "batch"},
      {"gatv2", {.lr = 0.05, .clip_norm = 0.5, .ema = 0.9}, {.name = "plateau", .gamma = 0.3, .patience = 0}, "batch"}};
  for (const Case& c : cases) {
    RunConfig config = small_run(c.model, 5);
    config.optimizer = c.optimizer;
    config.schedule = c.schedule;
    config.model.norm = c.norm;
    Session session(small_data(), config);
    session.start();
    const TrainResult whole = train(session, {.run_folder = dir_.path(c.model), .checkpoint_every = 1, .keep = 100});
    for (const int epoch : {1, 3, 5}) {
      const std::string folder = c.model + std::to_string(epoch);
      rewind(c.model, folder, epoch);
      const TrainResult resumed = run(config, folder, true);
      EXPECT_EQ(model(folder), model(c.model)) << c.model << " resumed after " << epoch;
      EXPECT_EQ(resumed.test_score, whole.test_score);
      EXPECT_EQ(resumed.last_test_score, whole.last_test_score);
      EXPECT_EQ(resumed.best_epoch, whole.best_epoch);
      const auto lines = metric_lines(folder);
      ASSERT_EQ(lines.size(), 5u);
      for (size_t i = 0; i < 5; ++i) {
        EXPECT_NE(lines[i].find("\"epoch\":" + std::to_string(i + 1) + ","), std::string::npos) << lines[i];
      }
    }
  }
}

TEST_F(TrainerTest, ThreadsDoNotChangeTheFile) {
  std::string first;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    RunConfig config = small_run("gat");
    config.threads = threads;
    const std::string folder = "t" + std::to_string(threads);
    run(config, folder);
    if (first.empty()) first = model(folder);
    EXPECT_EQ(model(folder), first) << threads;
  }
}

TEST_F(TrainerTest, ALongerRunContinuesAShorterOne) {
  run(small_run("gcn", 8), "whole");
  run(small_run("gcn", 3), "grown");
  run(small_run("gcn", 8), "grown", true);
  // The settings inside say how many epochs were asked for, so the weights are the same bytes, too.
  EXPECT_EQ(model("grown"), model("whole"));
  EXPECT_USER_ERROR(run(small_run("gcn", 7), "grown", true), "--epochs");
}

TEST_F(TrainerTest, HalfALineOfMetricsIsDropped) {
  run(small_run("gcn", 4), "a");
  rewind("a", "b", 3);
  const std::string lines = read_bytes(dir_.path("a/metrics.jsonl"));
  dir_.write("b/metrics.jsonl", lines.substr(0, lines.size() - 20));
  run(small_run("gcn", 4), "b", true);
  EXPECT_EQ(metric_lines("b").size(), 4u);
}

// The write of line 3 has failed in the middle, after the metrics and the checkpoint had the epoch.
TEST_F(TrainerTest, ALineThatTheTableLacksIsMadeFromTheMetrics) {
  const auto train_with_table = [&](int epochs, const std::string& folder, const std::string& metrics, bool resume) {
    Session session(small_data(), small_run("gcn", epochs));
    session.start();
    train(session, {.run_folder = dir_.path(folder),
                    .resume = resume,
                    .checkpoint_every = 1,
                    .keep = 100,
                    .metrics_file = metrics,
                    .logs = {"csv"}});
  };
  const auto table_lines = [&](const std::string& folder) {
    std::istringstream text(read_bytes(dir_.path(folder + "/metrics.csv")));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  };
  for (const bool elsewhere : {false, true}) {
    const std::string from = elsewhere ? "c" : "a", to = elsewhere ? "d" : "b";
    const std::string metrics = elsewhere ? dir_.path("lines") : "";
    train_with_table(3, from, metrics, false);
    const std::vector<std::string> whole = table_lines(from);
    ASSERT_EQ(whole.size(), 4u);
    rewind(from, to, 3);
    dir_.write(to + "/metrics.csv", whole[0] + "\n" + whole[1] + "\n" + whole[2] + "\n" + whole[3].substr(0, 5));
    train_with_table(5, to, metrics, true);
    const std::vector<std::string> mended = table_lines(to);
    ASSERT_EQ(mended.size(), 6u);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(mended[i], whole[i]) << i;
    EXPECT_TRUE(mended[4].starts_with("4,")) << mended[4];
  }
}

TEST_F(TrainerTest, CheckpointsAreNotOverwrittenByAccident) {
  run(small_run("gcn", 2), "a");
  EXPECT_USER_ERROR(run(small_run("gcn", 2), "a"), "--resume");
  EXPECT_USER_ERROR(run(small_run("sage", 2), "a", true), "other data, model or training settings");
  EXPECT_USER_ERROR(run(small_run("gcn", 2), "a", true, {.weighted = true}), "other data, model or training settings");
}

TEST_F(TrainerTest, KeepsTheBestOrTheLastWeights) {
  RunConfig config = small_run("gcn", 12);
  const TrainResult best = run(config, "best");
  config.select = "last";
  const TrainResult last = run(config, "last");
  EXPECT_EQ(last.best_epoch, 12);
  EXPECT_EQ(last.test_score, best.last_test_score);
  EXPECT_GE(best.val_score, last.val_score);
  const TrainResult again = run(config, "last", true);
  EXPECT_EQ(again.test_score, last.test_score) << "a finished run says the same when it is resumed";
  EXPECT_EQ(again.train_score, last.train_score);
}

TEST_F(TrainerTest, CanChooseByValidationLoss) {
  RunConfig config = small_run("gcn", 30);
  config.select = "loss";
  Session session(small_data(), config);
  session.start();
  const TrainResult r = train(session, {.run_folder = dir_.path("a"), .checkpoint_every = 1, .keep = 100});
  std::vector<double> losses;
  for (const std::string& line : metric_lines("a"))
    losses.push_back(std::stod(line.substr(line.find("\"val_loss\":") + 11)));
  ASSERT_EQ(losses.size(), 30u);
  EXPECT_EQ(r.best_epoch, 1 + std::min_element(losses.begin(), losses.end()) - losses.begin());
  rewind("a", "b", 7);
  const TrainResult resumed = run(config, "b", true);
  EXPECT_EQ(model("b"), model("a"));
  EXPECT_EQ(resumed.best_epoch, r.best_epoch);
}

TEST_F(TrainerTest, StopsEarlyAndStaysStopped) {
  RunConfig config = small_run("gcn", 500);
  config.patience = 3;
  const TrainResult r = run(config, "a");
  EXPECT_TRUE(r.stopped_early);
  EXPECT_FALSE(r.interrupted);
  EXPECT_LT(r.epochs, 500);
  EXPECT_EQ(r.epochs, r.best_epoch + 3);
  const std::string weights = model("a");
  const TrainResult again = run(config, "a", true);
  EXPECT_TRUE(again.stopped_early);
  EXPECT_EQ(again.epochs, r.epochs);
  EXPECT_EQ(model("a"), weights);
}

TEST_F(TrainerTest, EvaluatesAsOftenAsAsked) {
  RunConfig config = small_run("gcn", 7);
  config.eval_every = 3;
  run(config, "a");
  const auto lines = metric_lines("a");
  ASSERT_EQ(lines.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    const bool wanted = i + 1 == 3 || i + 1 == 6 || i + 1 == 7;
    EXPECT_EQ(lines[i].find("\"val\"") != std::string::npos, wanted) << lines[i];
  }
}

TEST_F(TrainerTest, WithoutValidationTheLastEpochIsKept) {
  Dataset d = small_data();
  d.splits.val = {};
  Session session(d, small_run("gcn", 4));
  session.start();
  const TrainResult r = train(session, {});
  EXPECT_EQ(r.best_epoch, 4);
  EXPECT_LT(r.val_score, 0);
  EXPECT_EQ(r.test_score, r.last_test_score);
}

TEST_F(TrainerTest, ALossThatIsNoNumberEndsTheRun) {
  RunConfig config = small_run("gcn", 50);
  config.optimizer = {.name = "sgd", .lr = 1e30};
  Session session(small_data(), config);
  session.start();
  EXPECT_THROW(train(session, {.run_folder = dir_.path("a"), .checkpoint_every = 1}), RuntimeError);
  EXPECT_FALSE(fs::exists(dir_.path("a/model.safetensors")));
}

TEST_F(TrainerTest, SettingsOutOfRangeAreRefusedBeforeAnythingIsWritten) {
  const auto refused = [&](const auto& change, const std::string& option) {
    RunConfig config = small_run("gcn");
    change(config);
    EXPECT_USER_ERROR(check_training(config), option);
  };
  refused([](RunConfig& c) { c.epochs = 0; }, "--epochs");
  refused([](RunConfig& c) { c.eval_every = 0; }, "--eval-every");
  refused([](RunConfig& c) { c.patience = -1; }, "--patience");
  refused([](RunConfig& c) { c.select = "median"; }, "--select");
  refused([](RunConfig& c) { c.optimizer.lr = NAN; }, "--lr");
  refused([](RunConfig& c) { c.schedule.name = "x"; }, "--lr-schedule");
}

TEST_F(TrainerTest, FreshFoldersAreCounted) {
  const std::string a = fresh_run_folder(dir_.path("runs"), "twin:cora@0.1-gcn");
  const std::string b = fresh_run_folder(dir_.path("runs"), "twin:cora@0.1-gcn");
  EXPECT_NE(a, b);
  EXPECT_EQ(fs::path(a).filename(), "twin-cora-0.1-gcn-1");
  dir_.write("file", "");
  EXPECT_USER_ERROR(fresh_run_folder(dir_.path("file"), "x"), "--checkpoint");
}

}  // namespace
}  // namespace nacre::test

// Tests --staleness: every batch reads the weights that it should, whatever the number of threads,
// and a run that was stopped in the middle of an epoch continues to the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "data/fixtures.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/train/batch_session.h"
#include "train/kinds.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

class Staleness : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(2); }
};

RunConfig stale_run(int staleness, const std::string& model = "sage", int epochs = 3) {
  RunConfig config = small_batch_run(model, epochs);
  config.staleness = staleness;
  return config;
}

std::vector<float> weights_of(Trainee& session) {
  const Parameters& p = session.parameters();
  return {p.data(), p.data() + p.size()};
}

std::vector<float> trained(const Dataset& data, const RunConfig& config) {
  BatchSession session(data, config);
  session.start();
  train(session, {});
  return weights_of(session);
}

std::vector<float> trained(const RunConfig& config) { return trained(small_data(), config); }

// Computes every gradient in a session without staleness, with weights that are put there by hand:
// those of `staleness` updates before, or of the beginning of the epoch.
std::vector<float> trained_by_hand(const RunConfig& config, int staleness) {
  BatchSession session(small_data(), config);
  session.start();
  std::vector<float> now = weights_of(session);
  const size_t size = now.size();
  std::vector<float> gradient(size), first(size), second(size);
  std::vector<TrainedParameter> parameters;
  for (const Parameter& p : session.parameters().list())
    parameters.push_back({p.offset, p.size, gradient.data() + p.offset});
  const auto optimizer =
      make_cpu_optimizer(config.optimizer, parameters,
                         {now.data(), first.data(), second.data(), nullptr, session.parameters().trained_size()});
  int64_t step = 0;
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    std::vector<std::vector<float>> versions = {now};
    session.begin_epoch(epoch, 0);
    for (int i = 0; i < static_cast<int>(session.steps_per_epoch()); ++i, ++step) {
      const std::vector<float>& read = versions[static_cast<size_t>(std::max(0, i - staleness))];
      std::copy(read.begin(), read.end(), session.parameters().data());
      session.weights_changed();
      session.compute_next(step, [](const void*) {});
      std::copy_n(session.gradients().data, size, gradient.begin());
      optimizer->step(config.optimizer.lr);
      versions.push_back(now);
    }
  }
  return now;
}

TEST_F(Staleness, BatchesReadWeightsThatLackSoManyUpdates) {
  for (const char* model : {"sage", "gat"}) {
    std::vector<std::vector<float>> results;
    for (const int staleness : {0, 1, 3}) {
      SCOPED_TRACE(std::string(model) + " staleness " + std::to_string(staleness));
      results.push_back(trained(stale_run(staleness, model)));
      EXPECT_EQ(results.back(), trained_by_hand(stale_run(0, model), staleness));
    }
    EXPECT_NE(results[0], results[1]);
    EXPECT_NE(results[1], results[2]);
  }
}

TEST_F(Staleness, TheBitsDoNotDependOnThreadsOrBatchesAhead) {
  struct Case {
    const char* what;
    Dataset data;
    RunConfig config;
  };
  std::vector<Case> cases = {{"running statistics", small_data(), stale_run(2)},
                             {"learned features", small_data({.features = false}), stale_run(3)},
                             {"subgraphs", small_data(), stale_run(1)},
                             {"kinds of nodes", kinds_data(), kinds_run("rgcn")}};
  cases[0].config.model.norm = "batch";
  cases[1].config.load.features_file = "learned";
  cases[2].config.sampling.sampler = "saint-vertex";
  cases[2].config.sampling.fanout.clear();
  cases[3].config.batch_size = 3;
  cases[3].config.sampling.fanout = {2, 2};
  cases[3].config.staleness = 2;
  cases[3].config.epochs = 3;
  for (Case& c : cases) {
    SCOPED_TRACE(c.what);
    std::vector<float> want;
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      for (const int ahead : {0, 3}) {
        c.config.loader.in_flight = ahead;
        const std::vector<float> got = trained(c.data, c.config);
        if (want.empty()) want = got;
        EXPECT_EQ(got, want) << threads << " threads, " << ahead << " ahead";
      }
    }
    c.config.staleness = 0;
    EXPECT_NE(trained(c.data, c.config), want);
  }
}

// The run is stopped once before all of its tracks are in use, and once after that.
TEST_F(Staleness, AStoppedRunContinuesToTheSameBytes) {
  const TempDir dir;
  RunConfig config = stale_run(3);
  config.model.norm = "batch";
  const auto run = [&](const std::string& name, bool resume, std::function<bool()> stop) {
    BatchSession session(small_data(), config);
    session.start();
    TrainerOptions options{.run_folder = dir.path(name), .resume = resume, .checkpoint_every = 1, .keep = 1000};
    options.interrupted = std::move(stop);
    train(session, options);
  };
  run("whole", false, [] { return false; });
  const std::string want = read_bytes(dir.path("whole/model.safetensors"));
  for (const int stop : {1, 2, 3, 6, 8, 9, 12}) {
    const std::string name = "stopped" + std::to_string(stop);
    int asked = 0;
    run(name, false, [&] { return asked++ >= stop; });
    run(name, true, [] { return false; });
    EXPECT_EQ(read_bytes(dir.path(name + "/model.safetensors")), want) << "stopped at question " << stop;
  }
  config.staleness = 1;
  EXPECT_THROW(run("whole", true, [] { return false; }), UserError);
}

TEST_F(Staleness, LearnsAsWellAsWithout) {
  std::vector<double> scores;
  for (const int staleness : {0, 1, 4}) {
    double sum = 0;
    for (const uint64_t seed : {1, 2, 3}) {
      RunConfig config = stale_run(staleness, "sage", 30);
      config.seed = seed;
      BatchSession session(small_data(), config);
      session.start();
      sum += train(session, {}).train_score;
    }
    scores.push_back(sum / 3);
  }
  EXPECT_GT(scores[0], 0.9);
  for (const double score : scores) EXPECT_NEAR(score, scores[0], 0.05);
}

TEST_F(Staleness, TheBillHasItsTracks) {
  const auto bytes = [](int staleness, const std::string& what) {
    const BatchSession session(small_data(), stale_run(staleness));
    int64_t sum = 0;
    for (const MemoryItem& item : session.host_memory()) {
      if (item.what.find(what) != std::string::npos) sum += item.bytes;
    }
    return sum;
  };
  EXPECT_EQ(bytes(0, "tracks"), 0);
  EXPECT_EQ(bytes(3, "tracks"), 4 * 2 * bytes(0, "parameters"));
  EXPECT_EQ(bytes(3, "arenas"), 4 * bytes(0, "arena"));
  EXPECT_GT(bytes(3, "(features)"), bytes(0, "(features)"));
}

TEST_F(Staleness, IsRefusedWhereItCannotWork) {
  EXPECT_THROW(BatchSession(small_data(), stale_run(-1)), UserError);
  EXPECT_THROW(BatchSession(small_data(), stale_run(8)), UserError);
  BatchSession(small_data(), stale_run(7));
}

}  // namespace
}  // namespace nacre::test

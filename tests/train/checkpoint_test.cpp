// Checkpoints are whole or absent, the newest whole one counts, and they do not accumulate.
#include "nacre/train/checkpoint.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "data/fixtures.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

namespace fs = std::filesystem;

// The weights of a model, its optimiser and the best weights, filled with recognisable numbers.
struct Weights {
  Parameters parameters;
  OptimizerState optimizer;
  Tensor best;

  explicit Weights(const OptimizerOptions& options = {}) : parameters(make()), optimizer(options, parameters) {
    best = Tensor::zeros(DType::f32, {parameters.size()});
  }

  static Parameters make() {
    Dfg dfg;
    const auto add = [&](const std::string& name, std::vector<int64_t> dims, bool state) {
      Node node;
      node.op = Op::param;
      node.name = name;
      node.type.space = Space::param();
      node.type.dims = std::move(dims);
      node.init = Init::glorot;
      node.state = state;
      dfg.add(node);
    };
    add("w", {3, 5}, false);
    add("b", {5}, false);
    add("running", {4}, true);
    return {dfg, Blocks::full(Graph(), 1), 0};
  }

  void fill(float base) {
    for (int64_t i = 0; i < parameters.size(); ++i) parameters.data()[i] = base + static_cast<float>(i) / 64;
    for (Tensor* t : {&optimizer.first(), &optimizer.second()}) {
      for (int64_t i = 0; t->defined() && i < t->size(); ++i) t->data<float>()[i] = -base - static_cast<float>(i);
    }
    for (int64_t i = 0; i < best.size(); ++i) best.data<float>()[i] = base * 3 + static_cast<float>(i);
    optimizer.set_steps(static_cast<int64_t>(base));
  }

  // Returns everything that a checkpoint must bring back; padding between parameters does not
  // count.
  std::string bytes() {
    std::string all = std::to_string(optimizer.steps());
    const auto add = [&](const float* flat, bool trained_only) {
      for (const Parameter& p : parameters.list()) {
        if (p.trained || !trained_only)
          all.append(reinterpret_cast<const char*>(flat + p.offset), static_cast<size_t>(p.size) * 4);
      }
    };
    add(parameters.data(), false);
    if (optimizer.first().defined()) add(optimizer.first().data<float>(), true);
    if (optimizer.second().defined()) add(optimizer.second().data<float>(), true);
    add(best.data<float>(), false);
    return all;
  }
};

TrainState state_at(int epoch, const std::string& fingerprint = "abc") {
  TrainState s;
  s.epoch = epoch;
  s.step = epoch + 1000;
  s.seed = ~uint64_t{0};
  s.best_val = 1.0 / 3;
  s.best_epoch = epoch - 1;
  s.best_test = 0.1 + 0.2;
  s.since_best = 1;
  s.config_json = R"({"a":1})";
  s.plan_json = R"({"b":[2]})";
  s.fingerprint = fingerprint;
  return s;
}

TrainState fresh_state() {
  TrainState state = state_at(0, "abc");
  state.result_json = "{}";
  return state;
}

class CheckpointTest : public testing::Test {
 protected:
  void save(int epoch, int keep = 10, const std::string& fingerprint = "abc") {
    Weights w;
    w.fill(static_cast<float>(epoch));
    save_checkpoint(run_, state_at(epoch, fingerprint), w.parameters, w.optimizer, w.best, keep);
  }
  std::string expected(int epoch) {
    Weights w;
    w.fill(static_cast<float>(epoch));
    return w.bytes();
  }
  // Returns the epoch that loads (0 means none), after checking that all of it came back.
  int load() {
    Weights w;
    const auto state = load_newest_checkpoint(run_, fresh_state(), w.parameters, w.optimizer, w.best);
    if (!state) return 0;
    EXPECT_EQ(w.bytes(), expected(state->epoch));
    return state->epoch;
  }
  std::string folder(int epoch) const {
    std::string digits = std::to_string(epoch);
    return run_ + "/epoch-" + std::string(6 - std::min<size_t>(6, digits.size()), '0') + digits;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& entry : fs::directory_iterator(run_)) list.push_back(entry.path().filename().string());
    std::sort(list.begin(), list.end());
    return list;
  }

  TempDir dir_;
  std::string run_ = dir_.path("run");
};

TEST_F(CheckpointTest, BringsEverythingBack) {
  for (const OptimizerOptions& options : {OptimizerOptions{.name = "adam"}, OptimizerOptions{.name = "sgd"},
                                          OptimizerOptions{.name = "sgd", .momentum = 0.5}}) {
    const TempDir dir;
    Weights w(options);
    w.fill(7);
    const TrainState state = state_at(7);
    save_checkpoint(dir.path("r"), state, w.parameters, w.optimizer, w.best, 2);
    Weights back(options);
    const auto loaded =
        load_newest_checkpoint(dir.path("r"), fresh_state(), back.parameters, back.optimizer, back.best);
    ASSERT_TRUE(loaded);
    EXPECT_EQ(back.bytes(), w.bytes());
    EXPECT_EQ(loaded->epoch, state.epoch);
    EXPECT_EQ(loaded->step, state.step);
    EXPECT_EQ(loaded->seed, state.seed);
    EXPECT_EQ(loaded->best_val, state.best_val) << "doubles must come back to the last bit";
    EXPECT_EQ(loaded->best_test, state.best_test);
    EXPECT_EQ(loaded->best_loss, state.best_loss);
    EXPECT_EQ(loaded->best_epoch, state.best_epoch);
    EXPECT_EQ(loaded->since_best, state.since_best);
    EXPECT_EQ(loaded->config_json, state.config_json);
    EXPECT_EQ(loaded->plan_json, state.plan_json);
  }
}

TEST_F(CheckpointTest, NoFolderMeansNoCheckpoint) {
  EXPECT_EQ(load(), 0);
  fs::create_directory(run_);
  EXPECT_EQ(load(), 0);
  fs::create_directory(run_ + "/epoch-");
  fs::create_directory(run_ + "/epoch-12x");
  dir_.write("run/epoch-000009", "a file, not a folder");
  EXPECT_EQ(load(), 0);
}

TEST_F(CheckpointTest, TheNewestCountsAlsoPastSixDigits) {
  save(2);
  save(999999);
  EXPECT_EQ(load(), 999999);
  save(1000000);
  EXPECT_EQ(load(), 1000000);
}

TEST_F(CheckpointTest, KeepsAsManyAsAsked) {
  for (int epoch = 1; epoch <= 5; ++epoch) save(epoch, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"epoch-000004", "epoch-000005"}));
  save(6, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"epoch-000006"}));
}

bool same_json(const std::string& a, const std::string& b) {
  const auto parsed = nlohmann::json::parse(a, nullptr, false);
  return !parsed.is_discarded() && parsed == nlohmann::json::parse(b, nullptr, false);
}

TEST_F(CheckpointTest, EveryDamagedFileIsNoticedAndSkipped) {
  for (const std::string file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    save(1);
    save(2);
    const std::string path = folder(2) + "/" + file;
    const std::string whole = read_bytes(path);
    const size_t step = std::max<size_t>(1, whole.size() / 60);
    for (size_t n = 0; n < whole.size(); n += step) {
      // The newline at the end of the JSON file carries nothing.
      if (n + 1 == whole.size() && file == "state.json") continue;
      dir_.write("run/epoch-000002/" + file, whole.substr(0, n));
      ASSERT_EQ(load(), 1) << file << " cut at " << n;
    }
    for (size_t n = 0; n < whole.size(); n += 7) {
      if (std::isspace(static_cast<unsigned char>(whole[n])) != 0) continue;  // layout of the JSON
      std::string damaged = whole;
      damaged[n] = static_cast<char>(damaged[n] ^ 1);
      if (same_json(whole, damaged)) continue;  // a digit beyond the precision of its number
      dir_.write("run/epoch-000002/" + file, damaged);
      ASSERT_EQ(load(), 1) << file << " changed at " << n << ": " << whole.substr(n < 20 ? 0 : n - 20, 40);
    }
    fs::remove(path);
    ASSERT_EQ(load(), 1) << file << " missing";
    dir_.write("run/epoch-000002/" + file, whole);
    ASSERT_EQ(load(), 2);
    fs::remove_all(run_);
  }
}

TEST_F(CheckpointTest, NothingWholeMeansStartingAfresh) {
  save(1);
  save(2);
  for (const int epoch : {1, 2}) fs::remove(folder(epoch) + "/model.safetensors");
  EXPECT_EQ(load(), 0);
}

TEST_F(CheckpointTest, DamagedOnesGiveWayToNewOnes) {
  save(3);
  save(4);
  dir_.write("run/epoch-000004/model.safetensors", "damaged");
  ASSERT_EQ(load(), 3);
  save(4, 1);
  EXPECT_EQ(load(), 4);
  // A damaged checkpoint of a later epoch must not displace the good ones.
  save(9);
  dir_.write("run/epoch-000009/state.json", "{}");
  save(5, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"epoch-000005"}));
  EXPECT_EQ(load(), 5);
}

TEST_F(CheckpointTest, AWholeOneIsNotWrittenAgain) {
  save(3);
  const auto time = fs::last_write_time(folder(3) + "/state.json");
  save(3);
  EXPECT_EQ(fs::last_write_time(folder(3) + "/state.json"), time);
}

TEST_F(CheckpointTest, AnotherRunIsRefused) {
  save(1, 10, "another");
  EXPECT_USER_ERROR(load(), "other data, model or training settings");
  Weights w;
  TrainState fresh = state_at(0, "abc");
  fresh.config_json = R"({"training":{"seed":3,"epochs":9},"model":{"hidden":8}})";
  save_checkpoint(dir_.path("r"), fresh, w.parameters, w.optimizer, w.best, 1);
  fresh.fingerprint = "def";
  fresh.result_json = R"({"training":{"seed":4},"model":{"hidden":8}})";
  EXPECT_USER_ERROR(load_newest_checkpoint(dir_.path("r"), fresh, w.parameters, w.optimizer, w.best),
                    "settings: training.seed is 3 there and 4 here (");
}

TEST_F(CheckpointTest, LeftoversAreIgnoredAndCleaned) {
  save(1);
  fs::copy(folder(1), run_ + "/.tmp-epoch-000002-4711", fs::copy_options::recursive);
  dir_.write("run/model.safetensors.tmp.4711", "half");
  dir_.write("run/metrics.jsonl.tmp.4711", "half");
  dir_.write("run/notes.txt", "the user's own");
  dir_.write("run/notes.txt.tmp.1", "the user's own");
  EXPECT_EQ(load(), 1);
  save(2);
  EXPECT_EQ(names(), (std::vector<std::string>{"epoch-000001", "epoch-000002", "notes.txt", "notes.txt.tmp.1"}));
  fs::create_directory(run_ + "/.tmp-epoch-000002-4711");
  save(2);
  EXPECT_FALSE(fs::exists(run_ + "/.tmp-epoch-000002-4711")) << "also when there is nothing to write";
}

TEST_F(CheckpointTest, WeightsOfAnotherModelAreRefused) {
  const Weights w;
  Dfg dfg;
  Node node;
  node.op = Op::param;
  node.name = "w";
  node.type.space = Space::param();
  node.type.dims = {3, 4};
  dfg.add(node);
  Parameters other(dfg, Blocks::full(Graph(), 1), 0);
  save_weights(dir_.path("w"), w.parameters, w.best, "{}");
  EXPECT_USER_ERROR(load_weights(dir_.path("w"), other), "shape [3, 5]");
  node.name = "v";
  Dfg second;
  second.add(node);
  Parameters unknown(second, Blocks::full(Graph(), 1), 0);
  EXPECT_USER_ERROR(load_weights(dir_.path("w"), unknown), "no tensor 'v'");
}

}  // namespace
}  // namespace nacre::test

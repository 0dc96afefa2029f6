// Tests of runs over several devices: they train what one device trains.
#include <gtest/gtest.h>

#include <cmath>

#include "data/fixtures.h"
#include "nacre/cluster/failure.h"
#include "nacre/data/twin.h"
#include "nacre/train/ranked_session.h"
#include "nacre/train/session.h"
#include "support/rng.h"
#include "support/sanitized.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

// Returns all values of a setting, or the last one only if a sanitizer watches.
template <class T>
std::vector<T> tried(std::vector<T> values) {
  if (sanitized()) values.erase(values.begin(), values.end() - 1);
  return values;
}
const std::vector<std::string> kRows = tried<std::string>({"early", "narrow", "columns", "sums", "late"});
const std::vector<int> kRanks = tried<int>({1, 2, 4, 3});
const std::vector<PartitionMethod> kMethods =
    tried<PartitionMethod>({PartitionMethod::fennel, PartitionMethod::range, PartitionMethod::random});
const std::vector<std::string> kCounted = tried<std::string>({"gcn", "sage", "gin", "sage-lstm", "gat"});

struct RankedCase {
  std::string name, model;
  DataText data = {};
  void (*change)(RunConfig&) = [](RunConfig&) {};
};

std::vector<RankedCase> cases() {
  return {
      {"gcn", "gcn"},
      {"gcn_weighted", "gcn", {.weighted = true}},
      // The gradient of a bias before the normalisation is rounding noise, which Adam makes as
      // large as any other gradient; plain descent does not.
      {"gcn_batch_norm", "gcn", {}, [](RunConfig& c) { c.model.norm = "batch", c.optimizer.name = "sgd"; }},
      {"gcn_many_labels", "gcn", {.multilabel = true}},
      {"gcn_average", "gcn", {}, [](RunConfig& c) { c.optimizer.ema = 0.9; }},
      {"gcn_class_weights", "gcn", {}, [](RunConfig& c) { c.class_weights = "1,2,0.5"; }},
      {"sage", "sage"},
      {"sage_max", "sage", {}, [](RunConfig& c) { c.model.aggregator = "max"; }},
      {"sage_lstm", "sage-lstm"},
      {"gat", "gat"},
      {"gatv2", "gatv2"},
      {"rgcn", "rgcn", {.typed = true}},
      {"gin", "gin"},
      {"mlp", "mlp"},
  };
}

RunConfig config_of(const RankedCase& c) {
  RunConfig config = small_run(c.model);
  c.change(config);
  config.plan = "off";
  return config;
}

RunConfig with_ranks(RunConfig config, std::vector<std::string> devices, const std::string& rows = "auto") {
  config.ranks.devices = std::move(devices);
  config.ranks.halo_rows = rows;
  config.ranks.partition.use_cache = false;
  return config;
}

// The results of a run after some steps.
struct Shown {
  std::vector<double> losses;
  Scores scores;
  std::vector<float> logits;
  std::vector<float> weights;
};

Shown train_some(VertexModel& session) {
  Shown shown;
  session.start();
  for (int step = 0; step < 10; ++step) shown.losses.push_back(session.train_step(step, 0.01));
  session.use_average(true);
  shown.scores = session.evaluate(true);
  const float* logits = session.predict();
  shown.logits.assign(logits, logits + session.dataset().num_nodes() * session.dataset().num_classes);
  const Parameters& parameters = session.parameters();
  shown.weights.assign(parameters.data(), parameters.data() + parameters.size());
  return shown;
}

void expect_same(const Shown& got, const Shown& want) {
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-5 * std::abs(want.losses[i])) << "loss of step " << i;
  EXPECT_NEAR(got.scores.train, want.scores.train, 1e-9);
  EXPECT_NEAR(got.scores.val, want.scores.val, 1e-9);
  EXPECT_NEAR(got.scores.test, want.scores.test, 1e-9);
  EXPECT_NEAR(got.scores.val_loss, want.scores.val_loss, 1e-4);
  ASSERT_EQ(got.logits.size(), want.logits.size());
  for (size_t i = 0; i < want.logits.size(); ++i)
    ASSERT_NEAR(got.logits[i], want.logits[i], 1e-3 * (1 + std::abs(want.logits[i]))) << "logit " << i;
  for (size_t i = 0; i < want.weights.size(); ++i) ASSERT_NEAR(got.weights[i], want.weights[i], 1e-3) << "weight " << i;
}

class Ranked : public testing::TestWithParam<RankedCase> {};

TEST_P(Ranked, TrainsWhatOneDeviceTrains) {
  const RunConfig config = config_of(GetParam());
  const Dataset data = small_data(GetParam().data);
  Session one(data, config);
  const Shown want = train_some(one);
  for (const std::string& rows : kRows) {
    for (const int ranks : kRanks) {
      SCOPED_TRACE(rows + ", " + std::to_string(ranks) + " ranks");
      const std::vector<std::string> devices(static_cast<size_t>(ranks), ranks == 2 ? "cpu:2" : "cpu:1");
      RankedSession several(data, with_ranks(config, devices, rows), {});
      expect_same(train_some(several), want);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Ranked, EveryMethodAndShareGivesTheSame) {
  const RunConfig config = config_of(GetParam());
  const Dataset data = small_data(GetParam().data);
  Session one(data, config);
  const Shown want = train_some(one);
  for (const PartitionMethod method : kMethods) {
    SCOPED_TRACE(partition_method_name(method));
    RunConfig ranks = with_ranks(config, {"cpu:1", "cpu:1", "cpu:1"});
    ranks.ranks.partition.method = method;
    ranks.ranks.shares = {1, 0, 3};  // rank 1 owns nothing
    if (method == PartitionMethod::range) ranks.ranks.halo_rows = "sums";
    if (method == PartitionMethod::random) ranks.ranks.halo_rows = "columns";
    RankedSession several(data, ranks, {});
    expect_same(train_some(several), want);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Ranked, testing::ValuesIn(cases()), [](const auto& test) { return test.param.name; });

TEST(RankedSession, AllRanksHaveTheFiguresOfTheirParts) {
  const Dataset data = small_data();
  RankedSession several(data, with_ranks(small_run("gcn"), {"cpu:1", "cpu:1"}), {});
  several.start();
  several.train_step(0, 0.01);
  const std::vector<RankFigures> figures = several.figures();
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].vertices + figures[1].vertices, data.num_nodes());
  EXPECT_EQ(figures[0].edges + figures[1].edges, several.dataset().graph.num_edges());
  for (const RankFigures& rank : figures) {
    EXPECT_GT(rank.halo, 0);
    EXPECT_GT(rank.sent, 0);
    EXPECT_GT(rank.times.steps, 0);
    EXPECT_GE(rank.times.waiting, 0);
    EXPECT_GE(rank.times.communication, rank.times.reduction);
    EXPECT_LE(rank.times.communication + rank.times.waiting, rank.times.steps * 1.01);
  }
}

TEST(RankedSession, MovesWorkAndTrainsOn) {
  const Dataset data = small_data();
  const RunConfig config = small_run("sage");
  std::vector<double> want;
  {
    Session one(data, config);
    one.start();
    for (int step = 0; step < 9; ++step) want.push_back(one.train_step(step, 0.01));
  }
  RankedSession several(data, with_ranks(config, {"cpu:1", "cpu:1"}), {});
  several.start();
  several.move_work({{0.8, 0.2}, 10});
  const int64_t before = several.figures()[0].vertices;
  for (int step = 0; step < 9; ++step) {
    if (step == 4) several.move_work({{0.3, 0.7}, 3});
    EXPECT_NEAR(several.train_step(step, 0.01), want[static_cast<size_t>(step)], 1e-5 * want[static_cast<size_t>(step)])
        << "step " << step;
  }
  EXPECT_LT(several.figures()[0].vertices, before);
}

// A run that is far out of balance moves work, unless it ends too soon for that. The step counts
// from the beginning of the run, also if the run was resumed.
TEST(RankedSession, MovesWorkWhileStepsAreLeft) {
  for (const bool late : {false, true}) {
    SCOPED_TRACE(late ? "at the end" : "at the beginning");
    RunConfig config = with_ranks(small_run("gcn"), {"cpu:1", "cpu:1"});
    config.epochs = 1000000;
    RankedSession several(make_twin("arxiv@0.05", 0), config, {});
    several.start();
    several.move_work({{0.95, 0.05}, 10});
    const int64_t first = late ? config.epochs - 5 : 0;
    for (int64_t step = 0; step < 5; ++step) several.train_step(first + step, 0.01);
    if (late) {
      EXPECT_NEAR(several.shares()[0], 0.95, 1e-9);
      EXPECT_TRUE(several.predicted().empty());
    } else {
      EXPECT_LT(several.shares()[0], 0.9);
      ASSERT_EQ(several.predicted().size(), 2U);
      EXPECT_GT(several.predicted()[0].compute, 0);
    }
  }
}

TEST(RankedSession, SharesFollowARule) {
  RunConfig config = with_ranks(small_run("gcn"), {"cpu:1", "cpu:3"});
  for (const auto& [rule, first] : {std::pair("uniform", 0.5), std::pair("cores", 0.25), std::pair("auto", 0.25)}) {
    config.ranks.share_rule = rule;
    RankedSession several(small_data(), config, {});
    EXPECT_NEAR(several.shares()[0], first, 1e-9) << rule;
  }
  config.ranks.share_rule = "coers";
  EXPECT_USER_ERROR(RankedSession(small_data(), config, {}), "did you mean 'cores'");
}

// The bytes that the planner compares are those that travel (WG7).
TEST(RankedSession, ReceivesAsManyBytesAsPlanned) {
  for (const std::string& model : kCounted) {
    for (const std::string& rows : kRows) {
      SCOPED_TRACE(model + ", " + rows);
      RankedSession several(small_data(), with_ranks(small_run(model), {"cpu:1", "cpu:1", "cpu:1"}, rows), {});
      several.start();
      for (int step = 0; step < 2; ++step) several.train_step(step, 0.01);
      int64_t most = 0;
      for (const RankFigures& rank : several.figures()) {
        // Operands that never change travel once, before the first step.
        if (rows == "late") {
          EXPECT_GT(rank.received, 0);
        }
        EXPECT_EQ(rank.received, rank.planned_received);
        most = std::max(most, rank.received);
      }
      EXPECT_EQ(several.placement().cost.received, most);
    }
  }
}

// The rows that travel are chosen for each layer and direction. No choice for all of them is
// predicted to be faster.
TEST(RankedSession, ChoosesRowsForEverySite) {
  for (const std::string& model : kCounted) {
    for (const int hidden : {4, 24}) {
      SCOPED_TRACE(model + ", hidden " + std::to_string(hidden));
      RunConfig config = small_run(model);
      config.model.layers = 3;
      config.model.hidden = hidden;
      std::map<std::string, double> fixed;
      for (const std::string& rows : kRows) {
        RankedSession several(small_data(), with_ranks(config, {"cpu:1", "cpu:1", "cpu:1"}, rows), {});
        fixed[rows] = several.placement().cost.seconds;
        EXPECT_TRUE(several.placement().fixed.empty());
      }
      RankedSession several(small_data(), with_ranks(config, {"cpu:1", "cpu:1", "cpu:1"}), {});
      const PlacementChoice& chosen = several.placement();
      EXPECT_FALSE(chosen.sites.empty());
      for (const PricedRows& rows : chosen.fixed) {
        const auto run = fixed.find(halo_rows_name(rows.rows));
        if (run == fixed.end()) continue;
        if (rows.rows != HaloRows::columns) {
          EXPECT_LE(chosen.cost.seconds, kLateMargin * run->second) << run->first;
        }
        EXPECT_EQ(rows.cost.seconds, run->second) << run->first;
      }
      EXPECT_EQ(several.plan().options.halo_rows, chosen.placement);
      EXPECT_EQ(several.plan().placement.sites.size(), chosen.sites.size());
    }
  }
}

// In a graph whose edges all lead to few nodes, a rank has few partial sums for other ranks, but a
// large halo.
TEST(RankedSession, ConsidersSumsOnlyIfTheyAreFewer) {
  Dataset data = small_data();
  EdgeList edges{.num_nodes = data.num_nodes()};
  Rng rng(4);
  for (int i = 0; i < 400; ++i) {
    edges.src.push_back(static_cast<NodeId>(rng.below(data.num_nodes())));
    edges.dst.push_back(static_cast<NodeId>(rng.below(3)));
  }
  data.graph = build_graph(std::move(edges), "few destinations");
  // Returns the most bytes that a rank receives with one choice for all layers; -1 if the choice
  // was not tried.
  const auto received = [](const Dataset& of, HaloRows rows) {
    RankedSession several(of, with_ranks(small_run("sage"), {"cpu:1", "cpu:1"}, "auto"), {});
    for (const PricedRows& tried : several.placement().fixed) {
      if (tried.rows == rows) return tried.cost.received;
    }
    return int64_t{-1};
  };
  EXPECT_GT(received(data, HaloRows::sums), 0);
  EXPECT_LT(received(data, HaloRows::sums), received(data, HaloRows::late));
  data.graph = make_undirected(data.graph);
  EXPECT_EQ(received(data, HaloRows::sums), -1);
  RankedSession several(data, with_ranks(small_run("sage"), {"cpu:1", "cpu:1"}, "auto"), {});
  std::string notes;
  for (const std::string& note : several.notes()) notes += note + "\n";
  EXPECT_NE(notes.find("sums would send no fewer rows"), std::string::npos) << notes;
}

// Ranks that were resumed, or that begin with the weights of another run, all have these weights.
TEST(RankedSession, TakesWeightsFromOutside) {
  const Dataset data = small_data();
  const RunConfig config = small_run("sage");
  Session one(data, config);
  one.start();
  for (int step = 0; step < 5; ++step) one.train_step(step, 0.01);
  const std::vector<float> weights(one.parameters().data(), one.parameters().data() + one.parameters().size());
  const OptimizerState& theirs = one.optimizer();
  const auto copy_of = [](Tensor values) {
    return std::vector<float>(values.data<float>(), values.data<float>() + values.size());
  };
  const int64_t steps = theirs.steps();
  const std::vector<float> first = copy_of(one.optimizer().first()), second = copy_of(one.optimizer().second());
  std::vector<double> want;
  for (int step = 5; step < 9; ++step) want.push_back(one.train_step(step, 0.01));

  RankedSession several(data, with_ranks(config, {"cpu:1", "cpu:1", "cpu:1"}), {});
  several.start();
  std::copy(weights.begin(), weights.end(), several.parameters().data());
  OptimizerState& state = several.optimizer();
  state.set_steps(steps);
  std::copy(first.begin(), first.end(), state.first().data<float>());
  std::copy(second.begin(), second.end(), state.second().data<float>());
  several.weights_changed();
  for (int step = 5; step < 9; ++step) {
    const double loss = want[static_cast<size_t>(step) - 5];
    EXPECT_NEAR(several.train_step(step, 0.01), loss, 1e-5 * loss) << "step " << step;
  }
}

TEST(RankedSession, DevicesThatHardlyHelpAreLeftOut) {
  EXPECT_EQ(weak_ranks({528, 12}), std::vector<int>{1});
  EXPECT_EQ(weak_ranks({1, 64, 2, 64}), (std::vector<int>{0, 2}));
  EXPECT_EQ(weak_ranks({1, 1, 2}), std::vector<int>{});
  EXPECT_EQ(weak_ranks({1}), std::vector<int>{});
}

TEST(RankedSession, RefusesWhatDoesNotFit) {
  const Dataset data = small_data();
  const auto make = [&](const RunConfig& config) { RankedSession(data, config, {}); };
  EXPECT_USER_ERROR(make(with_ranks(small_run("gcn"), {"cpu:0"})), "threads of the host");
  EXPECT_USER_ERROR(make(with_ranks(small_run("gcn"), {"gpu"})), "is no device");
  RunConfig shares = with_ranks(small_run("gcn"), {"cpu:1", "cpu:1"});
  shares.ranks.shares = {1};
  EXPECT_USER_ERROR(make(shares), "has 1 number for 2 devices");
  RunConfig small = with_ranks(small_run("gcn"), {"cpu:1", "cpu:1"});
  small.memory_limit = 1000;
  EXPECT_USER_ERROR(RankedSession(data, small, {}).start(), "memory");
}

}  // namespace
}  // namespace nacre::test

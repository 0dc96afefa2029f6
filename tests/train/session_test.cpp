// Tests of sessions: the bill, and what data and model must agree on.
#include "nacre/train/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/fixtures.h"
#include "nacre/device/null_device.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "support/big_graphs.h"
#include "support/random_graphs.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

bool mentions(const std::vector<std::string>& notes, const std::string& text) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& n) { return n.find(text) != std::string::npos; });
}

int64_t item(const std::vector<MemoryItem>& items, const std::string& what) {
  for (const MemoryItem& i : items) {
    if (i.what.find(what) != std::string::npos) return i.bytes;
  }
  ADD_FAILURE() << "no item " << what;
  return -1;
}

// A file of another program may make this claim.
TEST(Session, ClassesWithoutLabelsAreRefused) {
  Dataset data = small_data();
  data.labels = {};
  EXPECT_USER_ERROR(Session(data, small_run("gcn")), "has no labels");
  RunConfig batches = small_run("sage");
  batches.mode = "minibatch";
  EXPECT_USER_ERROR(make_session(data, batches, {}), "has no labels");
  // There is nothing to be scored, but something to be predicted.
  for (const char* mode : {"full", "minibatch"}) {
    RunConfig config = small_run("sage");
    config.mode = mode;
    config.model.out_dim = 3;
    const auto session = make_session(data, config, {.training = false});
    session->start();
    EXPECT_TRUE(std::isfinite(session->predict()[0])) << mode;
  }
}

TEST(Session, BillIsTheSumOfItsPartsAndMatchesTheData) {
  Session session(small_data(), small_run("gcn"));
  const auto items = session.memory();
  int64_t sum = 0;
  for (const MemoryItem& i : items) {
    EXPECT_GE(i.bytes, 0) << i.what;
    sum += i.bytes;
  }
  EXPECT_EQ(total_bytes(items), sum);
  EXPECT_EQ(item(items, "features"), 60 * 7 * 4);
  // GCN 7 → 8 → 3 has 56 + 8 + 24 + 3 values, each parameter on its own cache lines.
  EXPECT_EQ(item(items, "parameters"), (64 + 16 + 32 + 16) * 4);
  EXPECT_EQ(item(items, "optimiser"), 3 * item(items, "parameters"));
  EXPECT_EQ(item(items, "labels"), 60 * 4 + 60 * 4 + 60 * 8);
  EXPECT_EQ(item(items, "arena"), std::max(session.trainer().arena_bytes(), session.predictor().arena_bytes()));
  const std::string text = memory_text(items);
  EXPECT_NE(text.find("total"), std::string::npos);
  session.start();
  EXPECT_EQ(total_bytes(session.memory()), sum) << "the bill does not change when it is paid";
}

TEST(Session, RunsExactlyWithinItsBillAndNotBelow) {
  RunConfig config = small_run("gat");
  config.memory_limit = total_bytes(Session(small_data(), config).memory());
  Session(small_data(), config).start();
  // A session does more work as long as that saves bytes.
  int64_t least = config.memory_limit;
  while (total_bytes(Session(small_data(), config).memory()) <= config.memory_limit) {
    least = config.memory_limit;
    --config.memory_limit;
    config.memory_limit = std::min(config.memory_limit, total_bytes(Session(small_data(), config).memory()));
  }
  EXPECT_EQ(config.memory_limit, least - 1);
  Session refused(small_data(), config);
  EXPECT_USER_ERROR(refused.start(), "--memory-limit");
}

// On a GPU, dropping values of a graph this large is worth it. If the choice is left to need, none
// is dropped while the memory lasts.
TEST(Planner, ComputesAgainWhereAskedOnly) {
  const Graph graph = typed_weighted_graph({.vertices = 40000, .edges = 60000});
  ModelOptions model = complete_options({.model = "gcn", .layers = 3, .in_dim = 100, .hidden = 256, .out_dim = 10});
  model.training = true;
  Dfg dfg = build_model(model);
  differentiate(dfg);
  const Blocks blocks = Blocks::full(graph, 3);
  const auto loader =
      std::make_shared<GpuCompiler>(make_null_device(typical_gpu()), [](const auto&) { return std::string(); });
  const auto context = std::make_shared<GpuContext>(loader, std::make_shared<GraphViews>(), GpuOptions{});
  RunConfig config;
  config.deterministic = true;
  const auto dropped = [&] {
    return plan_training(dfg, blocks, make_gpu_backend(context), plan_request(config, 10, ""), {}).dropped;
  };
  ASSERT_EQ(dropped().size(), 1);
  EXPECT_EQ(dropped()[0].value, "relu@layers.0.lin.bias");
  config.recompute = "fit";
  EXPECT_TRUE(dropped().empty());
  config.memory_limit = 100 << 20;
  EXPECT_FALSE(dropped().empty());
}

TEST(Planner, KeepsTheHalvesOfTheEdgesOnlyForPlansThatUseThem) {
  const TempDir dir;
  // It does not pay to divide these edges, because the two sources get all of them.
  const Graph graph = few_ends(End::src);
  ModelOptions model;
  model.model = "rgcn";
  model.in_dim = 48;
  model.out_dim = 16;
  model.num_edge_types = 2;
  Dfg dfg = build_model(model);
  differentiate(dfg);
  const auto backend = make_cpu_backend(std::make_shared<GraphViews>());
  RunConfig config;
  config.plan = "off";
  const Blocks compared = Blocks::full(graph, 2);
  const PlanAnswer without = plan_training(dfg, compared, backend, plan_request(config, 1 << 30, ""), {});
  const std::vector<Candidate>& candidates = without.search.candidates;
  EXPECT_TRUE(std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) {
    return c.what.find(kCoverOption) != std::string::npos;
  })) << "the edges were not divided to compare plans";
  ASSERT_FALSE(compared.uses_cover(without.plan.dfg));
  EXPECT_EQ(compared.cover_bytes(), 0);

  const Blocks used = Blocks::full(graph, 2);
  PlanOptions cover;
  for (const Site& site : find_sites(prepare_dfg(without_scores(dfg), used, cover), used.cover_layers()))
    cover.choices[site.key] = kCoverOption;
  config.plan = dir.write("cover.plan", plan_json(make_plan(without_scores(dfg), used, cover)));
  used.drop_cover();
  EXPECT_EQ(used.cover_bytes(), 0);
  const PlanAnswer with = plan_training(dfg, used, backend, plan_request(config, 10, ""), {});
  EXPECT_TRUE(used.uses_cover(with.plan.dfg));
  EXPECT_GT(used.cover_bytes(), 0) << "they are made again when they are needed again";
}

// Computing values again saves memory, and losses are the same to the bit. No memory at all is
// refused.
TEST(Session, FitsIntoLessMemoryByComputingAgain) {
  RunConfig config = small_run("gcn");
  config.model.layers = 6;
  config.model.hidden = 8;
  config.model.dropout = 0.3;
  Session usual(small_data(), config);
  EXPECT_TRUE(usual.planning().dropped.empty());
  usual.start();
  config.memory_limit = total_bytes(usual.memory()) - 60 * 8 * 4;  // the bytes of an activation
  Session fitted(small_data(), config);
  EXPECT_TRUE(mentions(fitted.notes(), "the backward pass computes again dropout@layers.0.lin.bias"));
  EXPECT_LE(total_bytes(fitted.memory()), config.memory_limit);
  EXPECT_FALSE(fitted.planning().dropped.empty());
  fitted.start();
  for (int step = 0; step < 3; ++step) {
    double usual_loss = 0, fitted_loss = 0;
    usual.queue_step(step, 0.01);
    usual.take_losses(usual_loss);
    fitted.queue_step(step, 0.01);
    fitted.take_losses(fitted_loss);
    EXPECT_EQ(usual_loss, fitted_loss) << step;
  }
  config.memory_limit = 1000;
  Session refused(small_data(), config);
  EXPECT_USER_ERROR(refused.start(), "--memory-limit");
}

TEST(Session, EvaluationOnlyIsCheaper) {
  const Session training(small_data(), small_run("gcn"));
  const Session evaluation(small_data(), small_run("gcn"), {.training = false});
  EXPECT_LT(total_bytes(evaluation.memory()), total_bytes(training.memory()));
}

TEST(Session, EdgeWeightsAreUsedOrRefused) {
  for (const ModelInfo* info : model_list()) {
    const auto open = [&] { Session(small_data({.weighted = true}), small_run(info->name)); };
    if (info->supports_edge_weight) {
      open();
    } else {
      EXPECT_USER_ERROR(open(), "weights");
    }
  }
  // The weights are used, so they change the result.
  Session plain(small_data(), small_run("gcn"));
  Session weighted(small_data({.weighted = true}), small_run("gcn"));
  plain.start();
  weighted.start();
  EXPECT_NE(plain.train_step(0, 0.1), weighted.train_step(0, 0.1));
}

TEST(Session, TypedModelsOnUntypedGraphsSaySo) {
  Session session(small_data(), small_run("rgcn"));
  EXPECT_TRUE(mentions(session.notes(), "7 made-up relations"));
  EXPECT_EQ(session.dataset().graph.num_edge_types(), 7);
  EXPECT_FALSE(mentions(Session(small_data({.typed = true}), small_run("rgcn")).notes(), "relations"));
  for (const int relations : {0, -1, 65536}) {
    RunConfig config = small_run("rgcn");
    config.relations = relations;
    EXPECT_USER_ERROR(Session(small_data(), config), "--relations");
  }
}

TEST(Session, MissingPartsAreNamed) {
  EXPECT_USER_ERROR(Session(small_data({.features = false}), small_run("gcn")), "--features");
  EXPECT_USER_ERROR(Session(small_data({.labels = false}), small_run("gcn")), "--labels");
  Dataset no_training = small_data();
  no_training.splits.train = {};
  EXPECT_USER_ERROR(Session(no_training, small_run("gcn")), "--splits");
  EXPECT_USER_ERROR(Session(small_data(), small_run("gnc")), "gcn");
  RunConfig config = small_run("gcn");
  config.normalize_features = "column";
  EXPECT_USER_ERROR(Session(small_data(), config), "--normalize-features");
  config = small_run("gcn");
  config.metric = "accuracy";
  EXPECT_USER_ERROR(Session(small_data({.multilabel = true}), config), "--metric");
}

TEST(Session, WordCountsAreDividedByTheirSums) {
  Dataset words = small_data();
  words.features = Tensor::zeros(DType::f32, {60, 20});
  for (int64_t v = 1; v < 60; ++v) words.features.data<float>()[v * 20 + v % 20] = 4;
  RunConfig config = small_run("gcn");
  const Session automatic(words, config);
  EXPECT_TRUE(mentions(automatic.notes(), "word counts"));
  for (int64_t v = 0; v < 60; ++v) {
    const float* row = automatic.dataset().features.data<float>() + v * 20;
    EXPECT_EQ(row[v % 20], v == 0 ? 0 : 1) << "a row without words stays zero";
  }
  config.normalize_features = "none";
  EXPECT_EQ(Session(words, config).dataset().features.data<float>()[21], 4);
  EXPECT_FALSE(mentions(Session(small_data(), small_run("gcn")).notes(), "word counts"))
      << "negative values are no counts";
}

TEST(Session, LossIsTheMeanOverLabelledTrainingVertices) {
  RunConfig config = small_run("mlp");
  config.model.dropout = 0;
  for (const bool multilabel : {false, true}) {
    Session session(small_data({.multilabel = multilabel}), config);
    session.start();
    const float* z = session.predict();
    const Dataset& d = session.dataset();
    double want = 0;
    for (const NodeId v : d.splits.train) {
      const float* row = z + static_cast<int64_t>(v) * 3;
      if (multilabel) {
        for (int c = 0; c < 3; ++c)
          want += std::log1p(std::exp(-std::abs(row[c]))) + std::max(row[c], 0.0F) -
                  row[c] * d.targets.data<uint8_t>()[v * 3 + static_cast<NodeId>(c)];
      } else {
        want += std::log(std::exp(row[0]) + std::exp(row[1]) + std::exp(row[2])) - row[d.labels[v]];
      }
    }
    want /= multilabel ? 30 * 3 : 30;
    EXPECT_NEAR(session.train_step(0, 0.1), want, 1e-5) << (multilabel ? "bce" : "cross entropy");
  }
}

TEST(Session, TrainedModelsMeetUnlabelledData) {
  RunConfig config = small_run("gcn");
  Session trained(small_data(), config);
  trained.start();
  const std::vector<float> want(trained.predict(), trained.predict() + 60 * 3);
  config = trained.config();
  Session session(small_data({.labels = false}), config, {.training = false});
  EXPECT_EQ(session.config().model.out_dim, 3);
  std::copy_n(trained.parameters().data(), trained.parameters().size(), session.parameters().data());
  session.start();
  EXPECT_EQ(std::vector<float>(session.predict(), session.predict() + 60 * 3), want);
  EXPECT_USER_ERROR(Session(small_data({.multilabel = true}), config, {.training = false}),
                    "trained for the other kind");
  config.model.in_dim = 9;
  EXPECT_USER_ERROR(Session(small_data(), config, {.training = false}), "was trained for 9");
}

TEST(Session, FingerprintSeesDataAndSettings) {
  const std::string base = Session(small_data(), small_run("gcn")).fingerprint();
  EXPECT_EQ(Session(small_data(), small_run("gcn")).fingerprint(), base);
  RunConfig config = small_run("gcn");
  config.threads = 1;
  EXPECT_EQ(Session(small_data(), config).fingerprint(), base);
  config.seed = 4;
  EXPECT_NE(Session(small_data(), config).fingerprint(), base);
  Dataset changed = small_data();
  changed.features.data<float>()[419] += 1;
  EXPECT_NE(Session(changed, small_run("gcn")).fingerprint(), base);
}

}  // namespace
}  // namespace nacre::test

// Tests of runs that number the vertices in another order: they train what a run in the given order
// trains, and give their results in the given order.
#include "nacre/train/vertex_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "data/fixtures.h"
#include "nacre/data/reordered.h"
#include "nacre/train/session.h"
#include "support/big_graphs.h"
#include "support/cache_folder.h"
#include "train/kinds.h"

namespace nacre::test {
namespace {

const std::vector<std::string> kOrders = {"degree", "rcm", "rabbit"};

RunConfig run_in(const std::string& order, const std::string& model) {
  RunConfig config = small_run(model);
  config.model.dropout = 0;  // the numbers of the vertices decide what dropout drops
  config.plan = "off";
  config.reorder = order;
  return config;
}

// What a run computes: the losses of its steps, scores, and results for every vertex.
struct Trained {
  std::vector<double> losses;
  Scores scores;
  std::vector<float> logits, embeddings;
};

Trained train(const Dataset& data, const RunConfig& config) {
  Session session(data, config, {.embeddings = true});
  session.start();
  Trained t;
  for (int step = 0; step < 5; ++step) t.losses.push_back(session.train_step(step, config.optimizer.lr));
  t.scores = session.evaluate(true);
  const auto nodes = static_cast<size_t>(data.num_nodes());
  const float* rows = session.predict();
  t.logits.assign(rows, rows + nodes * static_cast<size_t>(session.config().model.out_dim));
  rows = session.embeddings();
  t.embeddings.assign(rows, rows + nodes * static_cast<size_t>(session.embedding_width()));
  EXPECT_EQ(std::string(reorder_name(session.plan().options.vertex_order)), config.reorder);
  return t;
}

void expect_close(const std::vector<float>& a, const std::vector<float>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-4 * (1 + std::abs(b[i]))) << what << " " << i;
}

void expect_same_training(const Dataset& data, const RunConfig& given) {
  const Trained wanted = train(data, given);
  for (const std::string& order : kOrders) {
    const std::string what = given.model.model + " " + order;
    RunConfig config = given;
    config.reorder = order;
    const Trained got = train(data, config);
    for (size_t s = 0; s < wanted.losses.size(); ++s)
      EXPECT_NEAR(got.losses[s], wanted.losses[s], 1e-4 * (1 + std::abs(wanted.losses[s]))) << what << " step " << s;
    // The data set with several kinds of vertices has no test split.
    if (!std::isnan(wanted.scores.test)) {
      EXPECT_NEAR(got.scores.test, wanted.scores.test, 0.07) << what;
    }
    expect_close(got.logits, wanted.logits, what + " logits");
    expect_close(got.embeddings, wanted.embeddings, what + " embeddings");
  }
}

TEST(VertexOrder, TrainingIsTheSameInEveryOrder) {
  for (const char* model : {"gcn", "sage", "gat", "gatv2", "gin"}) {
    expect_same_training(small_data(), run_in("none", model));
    expect_same_training(small_data({.multilabel = true}), run_in("none", model));
  }
  for (const char* model : {"gcn", "sage"}) expect_same_training(small_data({.weighted = true}), run_in("none", model));
  expect_same_training(small_data({.typed = true}), run_in("none", "rgcn"));
}

TEST(VertexOrder, PlansOfEveryKindTrainTheSame) {
  for (const char* plan : {"vertex", "edge", "tensor", "src-id=64,edge-type=1"}) {
    RunConfig config = run_in("none", "gat");
    config.plan = plan;
    expect_same_training(small_data(), config);
  }
}

// The relations of an untyped graph are made from the given numbers of the vertices.
TEST(VertexOrder, MadeUpRelationsAreThoseOfTheGivenOrder) {
  expect_same_training(small_data(), run_in("none", "rgcn"));
}

TEST(VertexOrder, KindsOfVerticesStayTogether) {
  Dataset data = kinds_data();
  for (size_t k = 0; k < data.type_features.size(); ++k) {
    const int64_t rows = data.node_offsets[k + 1] - data.node_offsets[k];
    if (!data.type_features[k].defined() && rows > 0) data.type_features[k] = random_rows(rows, 5, 70 + k);
  }
  for (const char* model : {"gcn", "rgcn"}) {
    RunConfig config = run_in("none", model);
    config.model.in_dim = 6;
    expect_same_training(data, config);
  }
}

TEST(VertexOrder, ResultsInTheGivenOrderAreOnTheBill) {
  const auto bytes = [](const std::string& order, const SessionNeeds& needs) {
    RunConfig config = run_in(order, "gcn");
    config.device = "cpu";
    const Session session(small_data(), config, needs);
    int64_t sum = 0;
    for (const MemoryItem& item : session.memory()) {
      if (item.what == "results in the order of the data set") sum += item.bytes;
    }
    return sum;
  };
  EXPECT_EQ(bytes("none", {.embeddings = true}), 0) << "results are those of the executor";
  EXPECT_EQ(bytes("rcm", {.evaluation = false}), 0) << "there are no results";
  EXPECT_EQ(bytes("rcm", {}), 0) << "nobody asks for results";
  EXPECT_EQ(bytes("rcm", {.predicts = true}), 60 * 3 * 4);
  EXPECT_EQ(bytes("rcm", {.embeddings = true}), 60 * (3 + 8) * 4);
}

TEST(VertexOrder, FeaturesFollowTheirVertices) {
  const Dataset data = small_data();
  const Array<NodeId> order = vertex_order(data.graph, Reorder::rabbit);
  Dataset moved = data;
  reorder_features(moved, order);
  reorder_all_but_features(moved, order);
  validate(moved, "moved");
  const int64_t width = data.num_features();
  for (int64_t v = 0; v < order.size(); ++v) {
    EXPECT_EQ(moved.labels[v], data.labels[order[v]]);
    for (int64_t c = 0; c < width; ++c)
      EXPECT_EQ(moved.features.data<float>()[v * width + c], data.features.data<float>()[order[v] * width + c]);
  }
  std::set<NodeId> train(data.splits.train.begin(), data.splits.train.end());
  for (const NodeId v : moved.splits.train) EXPECT_TRUE(train.contains(order[v]));
}

TEST(VertexOrder, ModelsThatDependOnTheNumbersAreRefused) {
  EXPECT_USER_ERROR(Session(small_data(), run_in("rabbit", "sage-lstm")), "in the order of their numbers");
  EXPECT_USER_ERROR(Session(small_data(), run_in("rabbit", "mlp")), "does not read the graph");
  RunConfig learned = run_in("degree", "gcn");
  learned.load.features_file = "learned";
  EXPECT_USER_ERROR(Session(small_data({.features = false}), learned), "learned features");
  EXPECT_USER_ERROR(Session(kinds_data(),
                            [] {
                              RunConfig config = run_in("rcm", "gcn");
                              config.model.in_dim = 6;
                              return config;
                            }()),
                    "learn a row for each node");
  EXPECT_USER_ERROR(Session(small_data(), run_in("hilbert", "gcn")), "unknown order");
}

TEST(VertexOrder, PlanFilesKeepTheOrder) {
  PlanOptions options;
  options.vertex_order = Reorder::rcm;
  EXPECT_EQ(parse_options(options_json(options), "test").vertex_order, Reorder::rcm);
  EXPECT_EQ(parse_options(options_json({}), "test").vertex_order, Reorder::none);
  Session session(small_data(), run_in("rcm", "gcn"));
  EXPECT_EQ(planned_order(plan_json(session.plan()), "f"), Reorder::rcm);
  EXPECT_EQ(planned_order("no plan", "f"), Reorder::none);
}

// Tests whose cache folder is empty at first and is used by nothing else.
class CachedOrder : public testing::Test {
 protected:
  const CacheFolder cache_;
};

// Returns data whose rows of 512 columns do not fit a cache, so that their order matters.
Dataset big_data() {
  Dataset data;
  data.name = "big";
  data.graph = typed_weighted_graph({.vertices = 20000, .edges = 100000, .types = 1});
  data.features = Tensor::zeros(DType::f32, {20000, 8});
  data.labels = std::vector<int32_t>(20000, 0);
  data.num_classes = 2;
  std::vector<NodeId> train(100);
  for (size_t i = 0; i < train.size(); ++i) train[i] = static_cast<NodeId>(i);
  data.splits.train = train;
  return data;
}

RunConfig big_run() {
  RunConfig config = run_in("auto", "sage");
  config.model.hidden = 512;
  config.plan = "auto";
  return config;
}

Dfg training_dfg(const RunData& run) {
  ModelOptions options = run.config.model;
  options.training = true;
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

TEST_F(CachedOrder, LongRunsCompareOrdersAndRememberTheBest) {
  const Dataset data = big_data();
  const RunData run(data, big_run(), true);
  const Dfg dfg = training_dfg(run);
  const Blocks blocks = Blocks::full(run.dataset.graph, dfg.num_layers());
  const auto backend = make_cpu_backend(std::make_shared<GraphViews>());
  PlanRequest request;
  request.epochs = 1'000'000;
  const VertexOrder found = choose_order({run, dfg, blocks, backend, request});
  ASSERT_EQ(found.compared.size(), 4u);
  for (const Candidate& c : found.compared) EXPECT_EQ(c.chosen, c.what == reorder_name(found.how)) << c.what;
  EXPECT_EQ(found.order.size(), found.how == Reorder::none ? 0 : data.num_nodes());
  EXPECT_FALSE(std::filesystem::is_empty(cache_.path()));
  // The order that was found is stored in the cache, and other runs take it from there.
  const VertexOrder again = choose_order({run, dfg, blocks, backend, request});
  EXPECT_TRUE(again.compared.empty());
  EXPECT_EQ(again.how, found.how);
  EXPECT_TRUE(std::equal(again.order.begin(), again.order.end(), found.order.begin(), found.order.end()));
  // A short run does not compare anything, and neither do plans by rules.
  request.use_cache = false;
  request.epochs = 2;
  EXPECT_TRUE(choose_order({run, dfg, blocks, backend, request}).compared.empty());
  request.epochs = 1'000'000;
  request.plan = "off";
  EXPECT_TRUE(choose_order({run, dfg, blocks, backend, request}).compared.empty());
  request.plan = "auto";
  request.deterministic = true;
  EXPECT_TRUE(choose_order({run, dfg, blocks, backend, request}).compared.empty());
}

TEST(VertexOrder, AnAnswerHoldsIfAnOrderWasFoundOrAllWereCompared) {
  VertexOrder found;
  found.space.options = 4;
  found.space.timed = 2;
  EXPECT_FALSE(holds_for_longer_runs(found)) << "a longer run has time for the other orders";
  found.space.timed = 4;
  EXPECT_TRUE(holds_for_longer_runs(found));
  found.space.timed = 2;
  found.how = Reorder::rabbit;
  EXPECT_TRUE(holds_for_longer_runs(found));
}

// The shortest run that compares orders at all has little time for it. How many orders it compares
// depends on the machine.
TEST_F(CachedOrder, AComparisonThatWasCutShortIsContinuedByALongerRun) {
  const RunData run(big_data(), big_run(), true);
  const Dfg dfg = training_dfg(run);
  const Blocks blocks = Blocks::full(run.dataset.graph, dfg.num_layers());
  const auto backend = make_cpu_backend(std::make_shared<GraphViews>());
  PlanRequest request;
  VertexOrder found;
  for (request.epochs = 20; found.compared.empty() && request.epochs < 1'000'000;
       request.epochs += 1 + request.epochs / 16) {
    found = choose_order({run, dfg, blocks, backend, request});
  }
  ASSERT_FALSE(found.compared.empty());
  EXPECT_EQ(std::filesystem::is_empty(cache_.path()), !holds_for_longer_runs(found));
  request.epochs = 1'000'000;
  const VertexOrder later = choose_order({run, dfg, blocks, backend, request});
  EXPECT_EQ(later.compared.size(), holds_for_longer_runs(found) ? 0u : 4u);
}

}  // namespace
}  // namespace nacre::test

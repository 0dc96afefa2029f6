// Training on sampled blocks: with all neighbours it equals full-graph training, step by step;
// inference layer by layer equals the whole forward pass; and a run that is stopped in the middle
// of an epoch continues to the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "nacre/dfg/split.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/session.h"
#include "nacre/train/trainer.h"
#include "support/rng.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

Dataset small_data(bool typed = false, bool weighted = false) {
  test::Rng rng(7);
  const int n = 90;
  EdgeList edges;
  edges.num_nodes = n;
  edges.num_types = typed ? 3 : 1;
  for (int i = 0; i < 700; ++i) {
    // There are a hub, duplicates and self loops; the last vertices have no edges.
    const auto dst = static_cast<NodeId>(i % 5 == 0 ? 3 : rng.below(n - 5));
    edges.src.push_back(static_cast<NodeId>(rng.below(n - 5)));
    edges.dst.push_back(dst);
    if (typed) edges.type.push_back(static_cast<uint16_t>(rng.below(3)));
    if (weighted) edges.weight.push_back(static_cast<float>(rng.uniform(0.5, 1.5)));
  }
  Dataset d;
  d.name = "small";
  d.graph = build_graph(std::move(edges), "test");
  d.features = Tensor(DType::f32, {n, 12});
  for (float& x : d.features.span<float>()) x = static_cast<float>(rng.uniform(-0.5, 0.5));
  std::vector<int32_t> labels(n);
  for (int32_t& y : labels) y = static_cast<int32_t>(rng.below(4));
  labels[2] = -1;
  d.labels = labels;
  d.num_classes = 4;
  std::vector<NodeId> train, val;
  for (NodeId v = 0; v < n; ++v) (v % 3 == 0 ? val : train).push_back(v);
  d.splits.train = train;
  d.splits.val = val;
  return d;
}

RunConfig config_of(const std::string& model, int layers = 2) {
  RunConfig c;
  c.data = "small";
  c.device = "cpu";
  c.model.model = model;
  c.model.layers = layers;
  c.model.hidden = 16;
  c.plan = "off";
  c.epochs = 3;
  c.mode = "minibatch";
  c.batch_size = 1000;
  c.sampling.fanout.assign(static_cast<size_t>(layers), -1);
  c.loader.in_flight = 0;
  return c;
}

std::vector<float> weights(Trainee& t) {
  return {t.parameters().data(), t.parameters().data() + t.parameters().size()};
}

double largest_difference(const float* a, const float* b, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
  return most;
}

// Returns the same nodes, for runs that learn their features.
Dataset without_features(bool typed = false) {
  Dataset d = small_data(typed);
  d.features = {};
  return d;
}

class AllNeighbours : public testing::TestWithParam<const char*> {};

TEST_P(AllNeighbours, IsFullGraphTraining) {
  std::string model = GetParam();
  // Only the sum of the two biases counts, so their gradients are one value.
  const bool two_biases = model == "ngcf of its authors";
  if (two_biases) model = "ngcf";
  const bool typed = model == "rgcn";
  for (const std::string way : {"plain", "weighted", "learned features"}) {
    SCOPED_TRACE(model + ", " + way);
    const bool weighted = way == "weighted", learned = way == "learned features";
    if (weighted && model != "gcn" && model != "sage") continue;
    RunConfig c = config_of(model);
    if (learned) c.load.features_file = "learned";
    const auto data = [&] { return learned ? without_features(typed) : small_data(typed, weighted); };
    // Acts on the rows of all nodes, also of those that no batch reads.
    c.optimizer.weight_decay = 0.01;
    if (two_biases) {
      c.model.knobs["authors"] = 1;
      c.model.activation = "none";
    }
    BatchSession batches(data(), c);
    c.mode = "full";
    Session full(data(), c);
    batches.start();
    full.start();
    for (int step = 0; step < 3; ++step) {
      batches.begin_epoch(step, 0);
      EXPECT_NEAR(batches.train_step(step, 0.01), full.train_step(step, 0.01), 2e-5) << model << " step " << step;
    }
    const std::vector<float> a = weights(batches), b = weights(full);
    ASSERT_EQ(a.size(), b.size());
    EXPECT_LT(largest_difference(a.data(), b.data(), static_cast<int64_t>(a.size())), 2e-4) << model;
    EXPECT_LT(largest_difference(batches.predict(), full.predict(), 90 * 4), 2e-3) << model;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AllNeighbours,
                         testing::Values("gcn", "sage", "gat", "gatv2", "gin", "rgcn", "sage-lstm", "ngcf",
                                         "ngcf of its authors"));

TEST(LayerwiseInference, EqualsTheWholeForwardPassInSmallBlocks) {
  for (const char* model : {"gcn", "gat", "sage", "mlp", "rgcn"}) {
    RunConfig c = config_of(model, 3);
    c.model.norm = "batch";
    c.model.residual = true;
    c.memory_limit = 64 << 20;
    SessionNeeds needs;
    needs.training = false;
    needs.embeddings = true;
    const bool typed = std::string(model) == "rgcn";
    BatchSession layers(small_data(typed), c, needs);
    c.mode = "full";
    Session full(small_data(typed), c, needs);
    layers.start();
    full.start();
    EXPECT_LT(largest_difference(layers.predict(), full.predict(), 90 * 4), 1e-5) << model;
    if (std::string(model) == "mlp") continue;
    EXPECT_LT(largest_difference(layers.embeddings(), full.embeddings(), 90 * 16), 1e-5) << model;
  }
}

bool has_item(const std::vector<MemoryItem>& items, const std::string& what) {
  return std::any_of(items.begin(), items.end(), [&](const MemoryItem& item) { return item.what == what; });
}

TEST(WholeInference, EqualsLayerByLayerWhereItFits) {
  constexpr const char* kWhole = "evaluation on the whole graph";
  for (const char* model : {"gcn", "gat", "sage", "rgcn"}) {
    RunConfig c = config_of(model, 2);
    c.model.norm = "batch";
    SessionNeeds needs;
    needs.embeddings = true;
    const bool typed = std::string(model) == "rgcn";
    BatchSession whole(small_data(typed), c, needs);
    EXPECT_TRUE(has_item(whole.memory(), kWhole));
    RunConfig less = c;
    less.memory_limit = total_bytes(whole.memory()) - 1;
    c.deterministic = true;
    BatchSession layers(small_data(typed), c, needs);
    EXPECT_FALSE(has_item(layers.memory(), kWhole));
    for (BatchSession* session : {&whole, &layers}) {
      session->start();
      session->begin_epoch(0, 0);
      session->train_step(0, 0.05);
    }
    for (int again = 0; again < 2; ++again)
      EXPECT_LT(largest_difference(whole.predict(), layers.predict(), 90 * 4), 1e-5) << model;
    EXPECT_LT(largest_difference(whole.embeddings(), layers.embeddings(), 90 * 16), 1e-5) << model;
    BatchSession other(small_data(typed), less, needs);
    EXPECT_FALSE(has_item(other.memory(), kWhole)) << "without the memory for it, layer by layer";
  }
}

TEST(LearnedFeatures, AreTrainedBySmallBatches) {
  for (const char* model : {"sage", "mlp"}) {
    RunConfig c = config_of(model);
    c.batch_size = 7;
    c.epochs = 12;
    c.loader.in_flight = 2;
    if (std::string(model) == "sage") c.sampling.fanout = {3, 3};
    if (std::string(model) == "mlp") c.sampling.fanout.clear();
    c.load.features_file = "learned";
    BatchSession whole(without_features(), c);
    c.deterministic = true;
    BatchSession layers(without_features(), c);
    std::vector<double> first;
    for (BatchSession* session : {&whole, &layers}) {
      session->start();
      const std::vector<float> before = weights(*session);
      double loss = 0;
      for (int64_t epoch = 0, step = 0; epoch < c.epochs; ++epoch) {
        session->begin_epoch(epoch, 0);
        loss = 0;
        for (int64_t i = 0; i < session->steps_per_epoch(); ++i) loss += session->train_step(step++, 0.02);
        if (epoch == 0) first.push_back(loss);
      }
      EXPECT_LT(loss, first.back() / 2) << model;
      EXPECT_EQ(before.size(), weights(*session).size());
    }
    EXPECT_LT(largest_difference(whole.predict(), layers.predict(), 90 * 4), 2e-3) << model;
  }
}

TEST(LearnedFeatures, OfSeveralKindsAreTrained) {
  RunConfig c = config_of("gcn");
  c.load.features_file = "learned";
  Dataset d = without_features();
  d.node_types = {"paper", "author"};
  d.node_offsets = {0, 40, 90};
  BatchSession batches(d, c);
  c.mode = "full";
  Session full(d, c);
  batches.start();
  full.start();
  batches.begin_epoch(0, 0);
  EXPECT_NEAR(batches.train_step(0, 0.01), full.train_step(0, 0.01), 2e-5);
  EXPECT_LT(largest_difference(batches.predict(), full.predict(), 90 * 4), 2e-3);
}

TEST(LayerwiseInference, OneVertexABlock) {
  RunConfig c = config_of("gcn", 2);
  const RunData run(small_data(), c, true);
  const BatchInputs inputs(run);
  ModelOptions options = run.config.model;
  options.training = false;
  options.loss = "none";
  options.sampling = Sampling::blocks;
  const Dfg dfg = build_model(options);
  Parameters parameters(dfg, Blocks::full(run.dataset.graph, 1), 1);
  const auto place = [&](const std::string& name) -> void* {
    for (const Parameter& p : parameters.list()) {
      if (p.name == name) return parameters.data(p);
    }
    return nullptr;
  };
  const auto backend = make_cpu_backend(std::make_shared<GraphViews>());
  LayerwiseInference whole(run, inputs, dfg, backend, {});
  LayerwiseInference single(run, inputs, dfg, backend, {.block_bytes = 1});
  whole.run(run.dataset.features, place);
  single.run(run.dataset.features, place);
  EXPECT_LT(largest_difference(whole.values("logits"), single.values("logits"), 90 * 4), 1e-6);
}

TEST(SplitLayers, CarriesWhatTheNextLayerReads) {
  ModelOptions options = config_of("sage", 3).model;
  options.in_dim = 12;
  options.out_dim = 4;
  options.training = false;
  options.loss = "none";
  const std::vector<LayerStage> stages = split_layers(build_model(options));
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_TRUE(stages[0].reads.empty());
  ASSERT_EQ(stages[1].reads.size(), 1u);
  EXPECT_EQ(stages[1].reads[0].name, stages[0].writes[0].name);
  EXPECT_EQ(stages[2].writes[0].name, "logits");
  for (const LayerStage& s : stages) EXPECT_EQ(s.dfg.num_layers(), 1);
}

TEST(Batches, SampledTrainingLearnsAndIsTheSameForAnyThreads) {
  std::vector<float> first;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    RunConfig c = config_of("sage");
    c.sampling.fanout = {4, 3};
    c.batch_size = 13;
    BatchSession session(small_data(), c);
    session.start();
    EXPECT_EQ(session.steps_per_epoch(), 5);
    double loss = 0;
    for (int epoch = 0, step = 0; epoch < 6; ++epoch) {
      session.begin_epoch(epoch, 0);
      loss = 0;
      for (int b = 0; b < 5; ++b, ++step) loss += session.train_step(step, 0.02) / 5;
    }
    EXPECT_LT(loss, 1.2);  // ln 4 = 1.39 at the beginning
    if (first.empty()) first = weights(session);
    EXPECT_EQ(first, weights(session)) << threads << " threads";
  }
  set_num_threads(2);
}

// However batches are made, they are the same, and what the steps took is counted.
TEST(Batches, LoadersCanBeChangedBetweenEpochs) {
  RunConfig c = config_of("sage");
  c.sampling.fanout = {4, 3};
  c.batch_size = 13;
  BatchSession plain(small_data(), c), changing(small_data(), c);
  EXPECT_TRUE(plain.memory().size() == plain.host_memory().size());
  plain.start();
  changing.start();
  const LoaderOptions options[] = {{0, false, false, false}, {2, true, false, false}, {5, true, true, true}};
  for (int epoch = 0, step = 0; epoch < 3; ++epoch) {
    changing.load_with(options[epoch]);
    plain.begin_epoch(epoch, 0);
    changing.begin_epoch(epoch, 0);
    for (int b = 0; b < 5; ++b, ++step) EXPECT_EQ(plain.train_step(step, 0.02), changing.train_step(step, 0.02));
  }
  const StepTimes times = changing.step_times();
  EXPECT_EQ(times.steps, 15);
  EXPECT_GT(times.waited, 0);
  EXPECT_GT(times.host, 0);
  EXPECT_EQ(times.device, 0);
}

TEST(Batches, PlacesThatAreNotThereAreRefused) {
  RunConfig c = config_of("sage");
  c.mode = "minibatch";
  c.device = "cpu";
  EXPECT_NO_THROW(check_places(c));
  c.features_on = "host";
  EXPECT_NO_THROW(check_places(c));
  c.features_on = "device";
  EXPECT_THROW(check_places(c), UserError);
  c.features_on = "auto";
  c.sample_on = "there";
  EXPECT_THROW(check_places(c), UserError);
}

TEST(Batches, AnInterruptedRunEndsWithTheSameBytes) {
  const fs::path folder = fs::path(testing::TempDir()) / "nacre_batches";
  fs::remove_all(folder);
  RunConfig c = config_of("gcn");
  c.sampling.fanout = {4, 3};
  c.batch_size = 13;
  c.model.dropout = 0.3;
  BatchSession whole(small_data(), c);
  whole.start();
  train(whole, {});
  // Runs two steps of the second epoch, then writes a checkpoint as the loop does.
  BatchSession part(small_data(), c);
  part.start();
  TrainState state;
  state.seed = c.seed;
  state.config_json = config_json(part.config());
  state.plan_json = plan_json(part.plan());
  state.fingerprint = part.fingerprint();
  for (int epoch = 0; epoch < 2; ++epoch) {
    part.begin_epoch(epoch, 0);
    for (int64_t b = 0; b < (epoch == 0 ? 5 : 2); ++b) state.loss_sum += part.train_step(state.step++, 0.01);
    if (epoch == 0) state.loss_sum = 0;
  }
  state.epoch = 1;
  state.batch = 2;
  Tensor best(DType::f32, {part.parameters().size()});
  std::copy_n(part.parameters().data(), best.size(), best.data<float>());
  save_checkpoint(folder.string(), state, part.parameters(), part.optimizer(), best, 2);
  EXPECT_TRUE(fs::exists(folder / "epoch-000001.000002"));
  BatchSession rest(small_data(), c);
  rest.start();
  TrainerOptions options;
  options.run_folder = folder.string();
  options.resume = true;
  const TrainResult result = train(rest, options);
  EXPECT_EQ(result.epochs, 3);
  EXPECT_EQ(weights(whole), weights(rest));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace nacre

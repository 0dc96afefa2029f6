// Tests vertices of several kinds: features of different widths or none at all, through training,
// weights files, and what a trained model accepts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/fixtures.h"
#include "nacre/kernel/ref/interpreter.h"
#include "nacre/train/session.h"
#include "support/sanitized.h"
#include "train/kinds.h"

namespace nacre::test {
namespace {

const Parameter& parameter(const Session& session, const Parameters& parameters, const std::string& name) {
  for (const Parameter& p : parameters.list()) {
    if (p.name == name) return p;
  }
  throw std::runtime_error("no parameter " + name + " in a " + session.config().model.model);
}

TEST(Hetero, KindsBecomeProjectionsAndLearnedRows) {
  Session session(kinds_data(), small_run("rgcn"));
  const std::vector<VertexKind> want = {
      {"paper", kPapers, 7}, {"author_of_papers", kAuthors, 4}, {"field", kFields, 0}};
  EXPECT_EQ(session.config().model.kinds, want);
  EXPECT_EQ(session.config().model.in_dim, 8);
  const Parameters& all = session.parameters();
  EXPECT_EQ(parameter(session, all, "input.paper.weight").shape, (Shape{7, 8}));
  EXPECT_EQ(parameter(session, all, "input.author_of_papers.bias").shape, (Shape{8}));
  EXPECT_EQ(parameter(session, all, "embedding.field.weight").shape, (Shape{kFields, 8}));
  EXPECT_TRUE(std::any_of(session.notes().begin(), session.notes().end(), [](const std::string& n) {
    return n ==
           "3 kinds of nodes: paper (7 features), author_of_papers (4 features) projected to 8; rows of 8 "
           "numbers are learned for field";
  }));
  int64_t features = 0;
  for (const MemoryItem& item : session.memory()) features += item.what == "features" ? item.bytes : 0;
  EXPECT_EQ(features, (kPapers * 7 + kAuthors * 4) * 4);
}

// Compares the trained step, by whatever kernels the plan found, with the interpreter of the model
// as written.
TEST(Hetero, EveryModelComputesWhatItsDfgSays) {
  for (const ModelInfo* info : model_list()) {
    for (const char* plan : {"auto", "tensor"}) {
      SCOPED_TRACE(info->name + " by " + plan);
      RunConfig config = small_run(info->name);
      config.plan = plan;
      config.model.dropout = 0;
      Session session(kinds_data(), config);
      session.start();
      ModelOptions options = session.config().model;
      Dfg dfg = build_model(options);
      differentiate(dfg);
      ref::Bindings bindings;
      const Parameters& parameters = session.parameters();
      for (const Parameter& p : parameters.list()) bindings[p.name] = {parameters.data(p), parameters.data(p) + p.size};
      const Dataset& d = session.dataset();
      const auto tensor = [](const Tensor& t) {
        return std::vector<double>(t.data<float>(), t.data<float>() + t.size());
      };
      bindings["x.paper"] = tensor(d.type_features[0]);
      bindings["x.author_of_papers"] = tensor(d.type_features[2]);
      bindings["label"] = {d.labels.begin(), d.labels.end()};
      bindings["loss_weight"].assign(static_cast<size_t>(d.num_nodes()), 0);
      for (const NodeId v : d.splits.train)
        bindings["loss_weight"][v] = 1.0 / static_cast<double>(d.splits.train.size());
      ref::Interpreter reference(dfg, session.blocks());
      reference.run(bindings, {config.seed, 0});
      const double loss = session.train_step(0, 0.1);
      EXPECT_NEAR(loss, reference.scalar(dfg.output("loss")), 1e-5);
      for (const std::string name : {"embedding.field.weight", "input.paper.weight", "input.author_of_papers.bias"}) {
        const std::vector<double> want = reference.value(dfg.output("grad:" + name));
        const float* got = session.trainer().output("grad:" + name);
        for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << name << " element " << i;
      }
    }
  }
}

TEST(Hetero, TrainsDownAndTrainsTheLearnedRows) {
  for (const char* model : {"rgcn", "gat"}) {
    SCOPED_TRACE(model);
    Session session(kinds_data(), small_run(model));
    session.start();
    const Parameter rows = parameter(session, session.parameters(), "embedding.field.weight");
    const float* data = session.parameters().data(rows);
    const std::vector<float> before(data, data + rows.size);
    const double first = session.train_step(0, 0.02);
    double last = first;
    for (int step = 1; step < 40; ++step) last = session.train_step(step, 0.02);
    EXPECT_LT(last, 0.5 * first);
    EXPECT_NE(std::vector<float>(data, data + rows.size), before);
  }
}

// Two kinds that share their weights are one kind: loss and scores are equal to the bit, and
// gradients add up.
TEST(Hetero, KindsOfEqualWeightsAreOneKind) {
  Dataset one = kinds_data();
  const Tensor x = random_rows(60, 5, 4);
  one.node_types = {"all", "none"};
  one.node_offsets = {0, 60, 60};
  one.type_features = {x, Tensor()};
  Dataset two = kinds_data();
  two.node_types = {"a", "b"};
  two.node_offsets = {0, kPapers, 60};
  two.type_features = {Tensor(DType::f32, {kPapers, 5}), Tensor(DType::f32, {60 - kPapers, 5})};
  std::copy_n(x.data<float>(), kPapers * 5, two.type_features[0].data<float>());
  std::copy_n(x.data<float>() + kPapers * 5, (60 - kPapers) * 5, two.type_features[1].data<float>());

  Session first(one, small_run("rgcn"));
  Session second(two, small_run("rgcn"));
  first.start();
  second.start();
  const auto at = [](Session& s, const std::string& name) {
    return s.parameters().data(parameter(s, s.parameters(), name));
  };
  for (const Parameter& p : first.parameters().list()) {
    if (p.name.starts_with("layers.")) std::copy_n(first.parameters().data(p), p.size, at(second, p.name));
  }
  for (const std::string part : {".weight", ".bias"}) {
    const Parameter& p = parameter(first, first.parameters(), "input.all" + part);
    for (const std::string kind : {"a", "b"})
      std::copy_n(first.parameters().data(p), p.size, at(second, "input." + kind + part));
  }
  EXPECT_EQ(std::vector<float>(first.predict(), first.predict() + 180),
            std::vector<float>(second.predict(), second.predict() + 180));
  EXPECT_EQ(first.train_step(0, 0), second.train_step(0, 0));
  const float* sum = first.trainer().output("grad:input.all.weight");
  const float* a = second.trainer().output("grad:input.a.weight");
  const float* b = second.trainer().output("grad:input.b.weight");
  for (int i = 0; i < 5 * 8; ++i) EXPECT_NEAR(sum[i], a[i] + b[i], 1e-6) << i;
}

TEST(Hetero, AllKindsMayBeWithoutFeatures) {
  Dataset d = kinds_data();
  d.type_features.clear();
  Session session(d, small_run("rgcn"));
  session.start();
  const double first = session.train_step(0, 0.05);
  double last = first;
  for (int step = 1; step < 40; ++step) last = session.train_step(step, 0.05);
  EXPECT_LT(last, first);
}

TEST(Hetero, KindsOfOneNameAreKeptApart) {
  Dataset d = kinds_data();
  d.node_types = {"a b", "x", "a_b", ""};
  const std::vector<VertexKind> kinds = vertex_kinds(d);
  ASSERT_EQ(kinds.size(), 3U);
  EXPECT_EQ(kinds[0].name, "a_b");
  EXPECT_EQ(kinds[1].name, "a_b_2");
  EXPECT_EQ(kinds[2].name, "kind");
}

// Projections carry over to other graphs, but learned rows belong to their vertices.
TEST(Hetero, TrainedModelsNeedTheKindsTheyWereTrainedFor) {
  Session trained(kinds_data(), small_run("rgcn"));
  RunConfig config;
  config.data = "other";
  apply_config_json(config_json(trained.config()), "weights", config);
  EXPECT_EQ(config.model.kinds, trained.config().model.kinds);
  const SessionNeeds evaluation{.training = false};
  EXPECT_EQ(Session(kinds_data(), config, evaluation).config().model.in_dim, 8);
  EXPECT_USER_ERROR(Session(small_data({.typed = true}), config, evaluation), "has nodes of one kind");
  Dataset wider = kinds_data();
  wider.type_features[2] = random_rows(kAuthors, 5, 3);
  EXPECT_USER_ERROR(Session(wider, config, evaluation), "author_of_papers (5 features)");
  Dataset moved = kinds_data();
  moved.node_offsets = {0, kPapers, kPapers, kPapers + kAuthors + 1, 60};
  moved.type_features[2] = random_rows(kAuthors + 1, 4, 3);
  EXPECT_USER_ERROR(Session(moved, config, evaluation), "field (7 learned rows)");
  RunConfig plain;
  apply_config_json(config_json(Session(small_data({.typed = true}), small_run("rgcn")).config()), "weights", plain);
  EXPECT_USER_ERROR(Session(kinds_data(), plain, evaluation), "the kinds paper (7 features)");
}

TEST(Hetero, DamagedKindsAreAUserError) {
  for (const char* kinds : {"7", "\"paper\"", "[7]", "[{}]", R"([{"name":"a","vertices":"many","features":2}])",
                            R"([{"name":"a","vertices":3}])"}) {
    RunConfig config;
    const std::string text = std::string(R"({"model":{"kinds":)") + kinds + R"(},"data":{},"training":{}})";
    EXPECT_USER_ERROR(apply_config_json(text, "weights", config), "weights");
  }
}

TEST(Hetero, WordCountsAreFoundKindByKind) {
  Dataset d = kinds_data();
  Tensor words = Tensor::zeros(DType::f32, {kAuthors, 30});
  for (int64_t v = 0; v < kAuthors; ++v) words.data<float>()[v * 30 + v] = 4;
  d.type_features[2] = words;
  const Session session(d, small_run("gat"));
  EXPECT_EQ(session.dataset().type_features[2].data<float>()[0], 1);
  EXPECT_EQ(session.dataset().type_features[0].data<float>()[0], d.type_features[0].data<float>()[0]);
  EXPECT_TRUE(std::any_of(session.notes().begin(), session.notes().end(), [](const std::string& n) {
    return n.starts_with("features of author of papers look like word counts");
  }));
}

// ---- mini-batches

TEST(HeteroBatches, OfAllNeighboursAreFullGraphTraining) {
  const std::vector<const ModelInfo*> models = model_list();
  for (size_t i = 0; i < models.size(); i += sanitized_stride(3)) {
    // A run evaluates on the whole graph or, with --deterministic, layer by layer.
    for (const bool deterministic : {false, true}) {
      SCOPED_TRACE(models[i]->name + (deterministic ? " layer by layer" : ""));
      RunConfig config = kinds_run(models[i]->name);
      config.deterministic = deterministic;
      if (deterministic) config.plan = "auto";
      expect_full_graph_training(config);
    }
  }
}

TEST(HeteroBatches, KindsThatNoBatchReadsStayAsTheyAre) { expect_unread_kinds_to_stay(kinds_run("mlp")); }

TEST(HeteroBatches, EverySamplerTrainsDown) {
  for (const char* sampler : {"neighbor", "layer", "saint-vertex", "saint-edge", "saint-walk"}) {
    SCOPED_TRACE(sampler);
    RunConfig config = kinds_run("rgcn");
    config.sampling = {};
    config.sampling.sampler = sampler;
    if (sampler_info(sampler).draws_subgraph) {
      config.sampling.budget = sampler == std::string("saint-walk") ? 8 : 30;
    } else {
      config.sampling.fanout = {3, 3};
    }
    config.batch_size = 8;
    config.epochs = 12;
    config.optimizer = {};
    BatchSession session(kinds_data(), config);
    session.start();
    const double first = train_epoch(session, 0, 0.02);
    double last = first;
    for (int64_t epoch = 1; epoch < config.epochs; ++epoch) last = train_epoch(session, epoch, 0.02);
    EXPECT_LT(last, 0.7 * first);
  }
}

// Returns an item of the bill whose name ends so.
int64_t item(const BatchSession& session, const std::string& end) {
  int64_t bytes = 0;
  for (const MemoryItem& i : session.memory()) bytes += i.what.ends_with(end) ? i.bytes : 0;
  return bytes;
}

TEST(HeteroBatches, TheBillCountsTheTableAndTheRowsOfEveryKind) {
  RunConfig config = kinds_run("rgcn");
  config.loader.in_flight = 2;
  const BatchSession narrow(kinds_data(), config);
  EXPECT_EQ(item(narrow, "features"), (kPapers * 7 + kAuthors * 4) * 4);
  Dataset data = kinds_data();
  data.type_features[2] = random_rows(kAuthors, 404, 2);
  const BatchSession wide(data, config);
  EXPECT_EQ(item(wide, "features") - item(narrow, "features"), kAuthors * 400 * 4);
  int64_t authors = 0;
  const std::vector<Sample> batches = wide.trial_batches(1);
  for (const NodeId v : batches[0].vertices) authors += v >= kPapers && v < kPapers + kAuthors;
  EXPECT_GT(authors, 8);
  EXPECT_GE(item(wide, "batches (features)") - item(narrow, "batches (features)"), 3 * authors * 400 * 4);
}

// Values that 16 bits hold give the same bits as f32.
TEST(HeteroBatches, FeaturesOfEveryKindMayHave16Bits) {
  std::string bytes[2];
  for (const bool narrow : {false, true}) {
    Dataset data = kinds_data();
    for (Tensor& table : data.type_features) {
      for (float& x : table.defined() ? table.span<float>() : std::span<float>()) x = std::round(4 * x) / 4;
    }
    RunConfig config = kinds_run("sage");
    config.features.type = narrow ? "bf16" : "f32";
    config.batch_size = 7;
    BatchSession session(data, config);
    EXPECT_EQ(item(session, "features"), (kPapers * 7 + kAuthors * 4) * (narrow ? 2 : 4));
    session.start();
    train_epoch(session, 0, 0.1);
    bytes[narrow ? 1 : 0] = weight_bytes(session.parameters());
    EXPECT_TRUE(std::isfinite(session.predict()[0]));
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  RunConfig config = kinds_run("sage");
  config.features.type = "f16";
  Dataset data = kinds_data();
  data.type_features[2].data<float>()[5] = 1e6F;
  EXPECT_USER_ERROR(BatchSession(data, config), "feature 1 of node 37 is 1000000");
}

TEST(HeteroBatches, OptionsForOneTableAreRefused) {
  const auto refused = [](const char* option, void (*set)(RunConfig&)) {
    RunConfig config = kinds_run("rgcn");
    set(config);
    EXPECT_USER_ERROR(BatchSession(kinds_data(), config), std::string(option) + ": works for one table of features");
  };
  refused("--host-budget", [](RunConfig& c) { c.host_budget = 1 << 20; });
  refused("--feature-budget", [](RunConfig& c) { c.features.budget = {1000}; });
  refused("--placement", [](RunConfig& c) { c.features.placement = "random"; });
  refused("--host-rows", [](RunConfig& c) { c.features.host_rows = "copy"; });
}

}  // namespace
}  // namespace nacre::test

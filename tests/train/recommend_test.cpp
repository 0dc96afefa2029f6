// Tests recommenders from data to scores: what a step computes, that it learns, and that a run can
// be interrupted anywhere.
#include "nacre/train/recommend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/ref/interpreter.h"
#include "nacre/model/recommender.h"
#include "support/rng.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

constexpr int64_t kUsers = 40;
constexpr int64_t kItems = 30;

// Returns a set in which users like items of their own third. User 0 took nothing, user 1
// everything, and item 0 was never taken. Two items of each other user are held out.
Dataset tastes() {
  Rng rng(4);
  Dataset d;
  d.name = "tastes";
  d.node_types = {"user", "item"};
  d.node_offsets = {0, kUsers, kUsers + kItems};
  d.relations = {{0, "takes", 1}, {1, "rev_takes", 0}};
  EdgeList edges;
  edges.num_nodes = kUsers + kItems;
  edges.num_types = 2;
  std::vector<NodeId> held_user, held_item;
  const auto take = [&](int64_t user, int64_t item) {
    edges.src.insert(edges.src.end(), {static_cast<NodeId>(user), static_cast<NodeId>(kUsers + item)});
    edges.dst.insert(edges.dst.end(), {static_cast<NodeId>(kUsers + item), static_cast<NodeId>(user)});
    edges.type.insert(edges.type.end(), {0, 1});
  };
  for (int64_t item = 0; item < kItems; ++item) take(1, item);
  for (int64_t user = 2; user < kUsers; ++user) {
    std::vector<int64_t> liked;
    for (int64_t item = 1; item < kItems; ++item) {
      if (item % 3 == user % 3) liked.push_back(item);
    }
    for (size_t k = 0; k < 8; ++k) {
      std::swap(liked[k], liked[k + static_cast<size_t>(rng.below(static_cast<int64_t>(liked.size() - k)))]);
      if (k < 6) take(user, liked[k]);
      if (k < 6) continue;
      held_user.push_back(static_cast<NodeId>(user));
      held_item.push_back(static_cast<NodeId>(kUsers + liked[k]));
    }
  }
  take(5, rng.below(3) * 3 + 3);
  d.graph = build_graph(edges, "tastes");
  d.test_edges = {held_user, held_item, {}};
  validate(d, "tastes");
  return d;
}

RunConfig run_of(const std::string& model) {
  RunConfig c;
  c.data = "tastes";
  c.model.model = model;
  c.model.layers = 2;
  c.model.hidden = 8;
  c.optimizer.lr = 0.02;
  c.device = "cpu";
  c.plan = "off";
  c.metric = "recall@4";
  return c;
}

RecommendOptions batches_of(int64_t size) { return {.batch_size = size, .embedding_decay = 1e-3, .init_std = 0.1}; }

using Knobs = std::map<std::string, double>;

TEST(Recommend, a_step_computes_what_the_dfg_says) {
  const std::vector<std::pair<std::string, Knobs>> models = {
      {"lightgcn", {}},
      {"lightgcn", {{"edge-dropout", 0.3}}},
      {"ngcf", {}},
      {"ngcf", {{"edge-dropout", 0.3}, {"normalize", 1}}},
      {"ngcf", {{"edge-dropout", 0.3}, {"authors", 1}}},
      {"sage", {}},
  };
  for (const auto& [model, knobs] : models) {
    for (const char* plan : {"off", "tensor"}) {
      SCOPED_TRACE(model + " by " + plan);
      RunConfig config = run_of(model);
      config.model.knobs = knobs;
      config.plan = plan;
      RecommendSession session(tastes(), config, batches_of(64));
      session.start();
      Dfg dfg = build_recommender(session.config().model, 1e-3);
      differentiate(dfg);
      TripleBatches same(session.taken(), session.sides(), kUsers + kItems, {64, config.seed});
      session.begin_epoch(3, 0);
      same.begin_epoch(3);
      ASSERT_EQ(session.steps_per_epoch(), same.num_batches());
      for (int64_t b = 0; b < same.num_batches(); ++b) {
        ref::Bindings bindings;
        const Parameters& parameters = session.parameters();
        for (const Parameter& p : parameters.list())
          bindings[p.name] = {parameters.data(p), parameters.data(p) + p.size};
        for (int64_t t = 0; t < 64; ++t) {
          for (const double share : {1, 0, 0}) bindings["user_share"].push_back(share);
          for (const double share : {0, 1, -1}) bindings["item_share"].push_back(share);
          const auto counted = static_cast<double>(same.counted(b));
          bindings["loss_weight"].push_back(t < same.counted(b) ? 1 / counted : 0);
        }
        bindings["target"].assign(64, 1);
        std::vector<Graph> layers(static_cast<size_t>(dfg.num_layers() - 1), session.dataset().graph);
        layers.push_back(same.block(b));
        ref::Interpreter reference(dfg, Blocks(layers));
        reference.run(bindings, {config.seed, static_cast<uint64_t>(b)});
        // Plain gradient descent of rate 1 shows the gradient as the change of the weights; adam
        // only moves on here.
        EXPECT_NEAR(session.train_step(b, 0.01), reference.scalar(dfg.output("loss")), 1e-5) << "batch " << b;
      }
    }
  }
}

// The block of triples does not hide that the others are one graph: rows are only copied where
// kinds are joined.
TEST(Recommend, steps_run_no_plain_kernel_but_copies) {
  for (const char* model : {"lightgcn", "ngcf"}) {
    for (const double dropped : {0.0, 0.1}) {
      RunConfig config = run_of(model);
      config.model.knobs["edge-dropout"] = dropped;
      const RecommendSession session(tastes(), config, batches_of(64));
      const Plan& plan = session.plan();
      for (const Kernel& k : plan.kernels) {
        EXPECT_TRUE(k.once || k.kind != KernelKind::reference) << model << ": " << k.why;
        for (const NodeRef value : k.writes) {
          const ValueType& type = plan.dfg[value].type;
          EXPECT_TRUE(type.space.kind != SpaceKind::edge || type.row_size() == 1) << model << ": " << k.why;
        }
      }
    }
  }
}

// The weights of edges are not among the values that the plan computes once: the same triples lose
// other edges in another step.
TEST(Recommend, edges_are_dropped_anew_each_step_and_never_in_scores) {
  for (const char* model : {"lightgcn", "ngcf"}) {
    SCOPED_TRACE(model);
    const auto losses = [&](double dropped) {
      RunConfig config = run_of(model);
      config.model.knobs["edge-dropout"] = dropped;
      RecommendSession session(tastes(), config, batches_of(64));
      session.start();
      std::vector<double> seen;
      for (const int64_t step : {0, 1, 0}) {
        session.begin_epoch(0, 0);
        seen.push_back(session.train_step(step, 0));
      }
      seen.push_back(session.evaluate(false).test);
      for (int64_t i = 0; i < 20; ++i) seen.push_back(session.embeddings()[i]);
      return seen;
    };
    const std::vector<double> all = losses(0), some = losses(0.3);
    EXPECT_EQ(all[0], all[1]);
    EXPECT_NE(some[0], some[1]);
    EXPECT_EQ(some[0], some[2]);
    EXPECT_NE(some[0], all[0]);
    EXPECT_EQ(std::vector<double>(some.begin() + 3, some.end()), std::vector<double>(all.begin() + 3, all.end()));
  }
}

TEST(Recommend, gradients_reach_the_weights) {
  RunConfig config = run_of("ngcf");
  config.optimizer.name = "sgd";
  config.model.knobs["edge-dropout"] = 0.3;
  RecommendSession session(tastes(), config, batches_of(64));
  session.start();
  Dfg dfg = build_recommender(session.config().model, 1e-3);
  differentiate(dfg);
  TripleBatches same(session.taken(), session.sides(), kUsers + kItems, {64, config.seed});
  same.begin_epoch(0);
  session.begin_epoch(0, 0);
  ref::Bindings bindings;
  for (const Parameter& p : session.parameters().list())
    bindings[p.name] = {session.parameters().data(p), session.parameters().data(p) + p.size};
  for (int64_t t = 0; t < 64; ++t) {
    for (const double share : {1, 0, 0}) bindings["user_share"].push_back(share);
    for (const double share : {0, 1, -1}) bindings["item_share"].push_back(share);
  }
  bindings["loss_weight"].assign(64, 1.0 / 64);
  bindings["target"].assign(64, 1);
  std::vector<Graph> layers(2, session.dataset().graph);
  layers.push_back(same.block(0));
  ref::Interpreter reference(dfg, Blocks(layers));
  reference.run(bindings, {config.seed, 0});
  session.train_step(0, 1.0);
  for (const Parameter& p : session.parameters().list()) {
    const std::vector<double> gradient = reference.value(dfg.output("grad:" + p.name));
    for (size_t i = 0; i < gradient.size(); ++i)
      ASSERT_NEAR(session.parameters().data(p)[i], bindings[p.name][i] - gradient[i], 1e-5) << p.name << " " << i;
  }
}

TEST(Recommend, learns_what_users_like) {
  for (const char* model : {"lightgcn", "ngcf"}) {
    SCOPED_TRACE(model);
    RecommendSession session(tastes(), run_of(model), batches_of(32));
    session.start();
    const double first = session.train_epoch(0, 0.02);
    double last = first;
    for (int epoch = 1; epoch < 25; ++epoch) last = session.train_epoch(epoch, 0.02);
    EXPECT_LT(last, 0.6 * first);
    const Scores scores = session.evaluate(false);
    EXPECT_GT(scores.test, 0.75);  // chance gives about 0.17
    EXPECT_EQ(scores.test, session.test_ranking().recall);
    EXPECT_EQ(session.test_ranking().users, kUsers - 2);
    EXPECT_TRUE(std::isnan(scores.val));
  }
}

std::string trained_bytes(const std::vector<std::pair<int64_t, int64_t>>& parts, int threads) {
  const int before = num_threads();
  set_num_threads(threads);
  std::string bytes;
  {
    RunConfig config = run_of("ngcf");
    config.model.dropout = 0.2;
    config.model.knobs["edge-dropout"] = 0.2;
    RecommendSession session(tastes(), config, batches_of(48));
    session.start();
    const int64_t steps = session.steps_per_epoch();
    for (const auto& [begin, end] : parts) {
      for (int64_t step = begin; step < end; ++step) {
        if (step == begin || step % steps == 0) session.begin_epoch(step / steps, step % steps);
        session.train_step(step, 0.01);
      }
    }
    bytes = weight_bytes(session.parameters());
  }
  set_num_threads(before);
  return bytes;
}

TEST(Recommend, weights_depend_neither_on_threads_nor_on_where_a_run_was_cut) {
  const std::string whole = trained_bytes({{0, 12}}, 1);
  EXPECT_EQ(trained_bytes({{0, 12}}, 3), whole);
  EXPECT_EQ(trained_bytes({{0, 7}, {7, 12}}, 2), whole);
  EXPECT_NE(trained_bytes({{0, 11}}, 1), whole);
}

TEST(Recommend, kinds_with_features_are_projected) {
  Dataset d = tastes();
  d.type_features = {Tensor(), Tensor::zeros(DType::f32, {kItems, 3})};
  for (int64_t i = 0; i < kItems; ++i) d.type_features[1].data<float>()[3 * i + i % 3] = 1;
  RecommendSession session(d, run_of("lightgcn"), batches_of(32));
  session.start();
  const double first = session.train_epoch(0, 0.02);
  double last = first;
  for (int epoch = 1; epoch < 15; ++epoch) last = session.train_epoch(epoch, 0.02);
  EXPECT_LT(last, 0.8 * first);
}

TEST(Recommend, evaluation_alone_gives_the_same_scores) {
  RecommendSession trained(tastes(), run_of("lightgcn"), batches_of(32));
  trained.start();
  trained.train_epoch(0, 0.02);
  RecommendSession other(tastes(), trained.config(), batches_of(32), {.training = false});
  std::copy_n(trained.parameters().data(), trained.parameters().size(), other.parameters().data());
  other.start();
  EXPECT_EQ(other.evaluate(false).test, trained.evaluate(false).test);
  EXPECT_EQ(other.test_ranking().ndcg, trained.test_ranking().ndcg);
}

TEST(Recommend, what_does_not_fit_is_a_user_error) {
  EXPECT_USER_ERROR(RecommendSession(small_data(), run_of("lightgcn"), {}), "has no users and items");
  EXPECT_USER_ERROR(RecommendSession(tastes(), run_of("lightgcn"), {.batch_size = 0}), "--batch-size");
  EXPECT_USER_ERROR(RecommendSession(tastes(), run_of("lightgcn"), {.embedding_decay = -1}), "--embedding-decay");
  RunConfig config = run_of("lightgcn");
  config.metric = "accuracy";
  EXPECT_USER_ERROR(RecommendSession(tastes(), config, {}), "does not score recommendations");
  Dataset crossed = tastes();
  crossed.test_edges = {std::vector<NodeId>{2, 45}, std::vector<NodeId>{45, 2}, {}};
  EXPECT_USER_ERROR(RecommendSession(crossed, run_of("lightgcn"), {}), "one kind of users");
  Dataset empty = tastes();
  EdgeList none;
  none.num_nodes = kUsers + kItems;
  empty.graph = build_graph(none, "none");
  EXPECT_USER_ERROR(RecommendSession(empty, run_of("lightgcn"), {}), "no user who took some items");
}

}  // namespace
}  // namespace nacre::test

// Settings as JSON: what is written comes back, and the fingerprint covers what decides the weights
// and nothing else.
#include "nacre/train/config.h"

#include <gtest/gtest.h>

#include "data/fixtures.h"

namespace nacre::test {
namespace {

RunConfig unusual() {
  RunConfig c;
  c.data = "some \"path\".npz";
  c.load.format = "npz";
  c.load.features_file = "f.npy";
  c.load.labels_file = "l.txt";
  c.load.splits_file = "s.npz";
  c.load.num_nodes = 12;
  c.load.undirected = true;
  c.load.ignore_edge_weights = true;
  c.load.seed = 99;
  c.normalize_features = "row";
  c.relations = 3;
  c.model.model = "gat";
  c.model.layers = 5;
  c.model.hidden = 48;
  c.model.in_dim = 10;
  c.model.out_dim = 4;
  c.model.heads = 6;
  c.model.out_heads = 2;
  c.model.aggregator = "max";
  c.model.activation = "tanh";
  c.model.norm = "layer";
  c.model.residual = true;
  c.model.num_bases = 2;
  c.model.loss = "bce";
  c.model.knobs = {{"epsilon", 0.125}};
  c.metric = "roc_auc";
  return c;
}

TEST(Config, ComesBackFromJson) {
  const RunConfig c = unusual();
  for (const std::string& text : {config_json(c), weights_config_json(c)}) {
    RunConfig back;
    apply_config_json(text, "test", back);
    EXPECT_EQ(weights_config_json(back), weights_config_json(c));
  }
}

TEST(Config, ASplitThatWasDrawnIsDrawnAgain) {
  RunConfig c = unusual();
  c.load.splits_file = "";
  c.load.split = "random:0.5/0.25/0.25";
  c.load.split_seed = 5;
  RunConfig back, moved, divided;
  moved.data = "elsewhere.npz";
  divided.load.split = "random:0.1/0.1/0.1";
  for (RunConfig* config : {&back, &moved, &divided}) apply_config_json(config_json(c), "test", *config);
  EXPECT_EQ(weights_config_json(back), weights_config_json(c));
  EXPECT_EQ(moved.load.split, c.load.split);
  EXPECT_EQ(moved.load.split_seed, 5U);
  EXPECT_EQ(divided.load.split, "random:0.1/0.1/0.1") << "what the user asks for wins";
}

TEST(Config, DataNamedByTheUserWin) {
  RunConfig c;
  c.data = "other.npz";
  apply_config_json(config_json(unusual()), "test", c);
  EXPECT_EQ(c.data, "other.npz");
  EXPECT_EQ(c.load.features_file, "");
  EXPECT_EQ(c.model.hidden, 48);
}

TEST(Config, DataAreLookedForWhereTheRunWasStarted) {
  const TempDir dir;
  dir.write("graph.npz", "x");
  RunConfig c;
  c.data = "graph.npz";
  c.load.labels_file = "absent.txt";
  c.folder = dir.path("");
  RunConfig back;
  apply_config_json(config_json(c), "test", back);
  EXPECT_EQ(back.data, dir.path("graph.npz"));
  EXPECT_EQ(back.load.labels_file, "absent.txt") << "what is nowhere keeps its name for the message";
  RunConfig elsewhere = c;
  elsewhere.folder = "elsewhere";
  EXPECT_EQ(result_settings_json(c), result_settings_json(elsewhere)) << "where the data lie decides nothing";
}

TEST(Config, DamagedJsonIsAUserError) {
  for (const char* text :
       {"", "{", "[]", "7", "{}", R"({"model":{},"data":{}})", R"({"model":7,"data":{},"training":{}})",
        R"({"model":{"layers":"two"},"data":{},"training":{}})",
        R"({"model":{"knobs":[1]},"data":{},"training":{}})"}) {
    RunConfig c;
    EXPECT_USER_ERROR(apply_config_json(text, "weights", c), "weights");
  }
}

TEST(Config, PathsMayHoldAnyBytes) {
  RunConfig c;
  c.data = "caf\xe9.npz";
  EXPECT_NE(config_json(c).find("caf\xEF\xBF\xBD.npz"), std::string::npos);
  EXPECT_NE(weights_config_json(c).find("caf"), std::string::npos);
  EXPECT_FALSE(result_settings_json(c).empty());
}

TEST(Config, ExecutionIsNoPartOfTheWeights) {
  const RunConfig c = unusual();
  RunConfig other = c;
  other.threads = 3;
  other.plan = "tensor";
  other.memory_limit = 12345;
  EXPECT_EQ(weights_config_json(other), weights_config_json(c));
  EXPECT_EQ(result_settings_json(other), result_settings_json(c));
  EXPECT_NE(config_json(other), config_json(c));
}

TEST(Config, WhatDecidesTheWeightsIsInTheFingerprint) {
  const RunConfig c = unusual();
  const auto differs = [&](const auto& change) {
    RunConfig other = c;
    change(other);
    return result_settings_json(other) != result_settings_json(c);
  };
  EXPECT_TRUE(differs([](RunConfig& o) { o.seed = 1; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.optimizer.lr = 0.02; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.optimizer.momentum = 0.5; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.schedule.warmup = 3; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.model.dropout = 0.3; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.model.attention_dropout = 0.3; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.model.knobs["epsilon"] = 0.25; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.normalize_features = "none"; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.patience = 10; }));
  EXPECT_TRUE(differs([](RunConfig& o) { o.select = "last"; }));
  EXPECT_FALSE(differs([](RunConfig& o) { o.data = "moved.npz"; })) << "the data have a fingerprint of their own";
}

TEST(Config, EpochsCountOnlyWhereTheyChangeTheWay) {
  const auto differs = [](RunConfig c) {
    RunConfig longer = c;
    longer.epochs = c.epochs + 1;
    return result_settings_json(longer) != result_settings_json(c);
  };
  RunConfig c = unusual();
  EXPECT_FALSE(differs(c));
  c.schedule.name = "step";
  EXPECT_FALSE(differs(c));
  c.schedule.name = "cosine";
  EXPECT_TRUE(differs(c));
  c.schedule.name = "constant";
  c.eval_every = 5;
  EXPECT_TRUE(differs(c)) << "the last epoch is evaluated even when it is not a multiple";
  c.select = "last";
  EXPECT_FALSE(differs(c));
  c.patience = 3;
  EXPECT_TRUE(differs(c));
}

}  // namespace
}  // namespace nacre::test

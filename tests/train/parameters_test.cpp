// Initial values depend on seed, name and shape alone and are within the bounds of their
// distributions.
#include "nacre/train/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "nacre/model/model.h"

namespace nacre::test {
namespace {

struct Leaf {
  std::string name;
  std::vector<int64_t> dims;
  Init init;
  double value = 0;
  bool state = false;
  Space space = Space::param();
};

Graph typed_graph() {
  EdgeList edges{.num_nodes = 3, .src = {0, 1, 2, 0}, .dst = {1, 2, 0, 2}, .type = {0, 1, 2, 2}, .num_types = 3};
  return build_graph(edges, "test");
}

Parameters make(const std::vector<Leaf>& leaves, uint64_t seed) {
  Dfg dfg;
  for (const Leaf& leaf : leaves) {
    Node node;
    node.op = Op::param;
    node.name = leaf.name;
    node.type.space = leaf.space;
    node.type.dims = leaf.dims;
    node.init = leaf.init;
    node.alpha = leaf.value;
    node.state = leaf.state;
    dfg.add(node);
  }
  return {dfg, Blocks::full(typed_graph(), 1), seed};
}

std::map<std::string, std::vector<float>> values(const Parameters& parameters) {
  std::map<std::string, std::vector<float>> map;
  for (const Parameter& p : parameters.list()) map[p.name].assign(parameters.data(p), parameters.data(p) + p.size);
  return map;
}

TEST(Parameters, DependOnSeedAndNameNotOnOrder) {
  const Leaf a{"layer0.weight", {13, 7}, Init::glorot};
  const Leaf b{"layer1.weight", {13, 7}, Init::glorot};
  const Leaf c{"bias", {9}, Init::uniform_fan_in};
  const Leaf s{"running", {9}, Init::ones, 0, true};
  const auto one = values(make({a, b, c, s}, 5));
  EXPECT_EQ(one, values(make({s, c, b, a}, 5)));
  EXPECT_EQ(one.at("bias"), values(make({c}, 5)).at("bias"));
  EXPECT_NE(one.at("layer0.weight"), one.at("layer1.weight"));
  const auto other = values(make({a, b, c, s}, 6));
  EXPECT_NE(one.at("layer0.weight"), other.at("layer0.weight"));
  EXPECT_EQ(one.at("running"), other.at("running"));
}

TEST(Parameters, KeepTheirBoundsAndFillThem) {
  const auto all = values(make({{"glorot", {50, 30}, Init::glorot},
                                {"fan_in", {400, 9}, Init::uniform_fan_in},
                                {"bias", {100}, Init::uniform_fan_in},
                                {"zeros", {5}, Init::zeros},
                                {"ones", {5}, Init::ones},
                                {"constant", {5}, Init::constant, 0.25}},
                               1));
  const auto check = [&](const std::string& name, double bound) {
    const std::vector<float>& v = all.at(name);
    double sum = 0;
    double squares = 0;
    for (const float x : v) {
      ASSERT_LE(std::abs(x), bound) << name;
      sum += x;
      squares += static_cast<double>(x) * x;
    }
    const auto n = static_cast<double>(v.size());
    EXPECT_NEAR(sum / n, 0, 4 * bound / std::sqrt(3 * n)) << name;
    EXPECT_NEAR(squares / n, bound * bound / 3, 4 * bound * bound * 0.3 / std::sqrt(n)) << name;
    EXPECT_GT(std::set<float>(v.begin(), v.end()).size(), v.size() * 9 / 10) << name;
  };
  check("glorot", std::sqrt(6.0 / 80));
  check("fan_in", 1 / std::sqrt(400.0));
  check("bias", 1 / std::sqrt(100.0));
  EXPECT_EQ(all.at("zeros"), std::vector<float>(5, 0));
  EXPECT_EQ(all.at("ones"), std::vector<float>(5, 1));
  EXPECT_EQ(all.at("constant"), std::vector<float>(5, 0.25F));
}

TEST(Parameters, LieOnCacheLinesTrainedOnesFirst) {
  const Parameters p = make({{"s", {3}, Init::zeros, 0, true}, {"a", {5}, Init::ones}, {"b", {17}, Init::ones}}, 0);
  ASSERT_EQ(p.list().size(), 3u);
  EXPECT_EQ(p.list()[0].name, "a");
  EXPECT_EQ(p.list()[1].name, "b");
  EXPECT_EQ(p.list()[2].name, "s");
  for (const Parameter& q : p.list()) EXPECT_EQ(q.offset % 16, 0) << q.name;
  EXPECT_EQ(p.trained_size(), 16 + 32);
  EXPECT_EQ(p.size(), 16 + 32 + 16);
  EXPECT_EQ(p.data()[5], 0) << "padding is zero, so that files do not depend on chance";
}

TEST(Parameters, HaveARowPerEdgeTypeWhereTheirSpaceSaysSo) {
  const Parameters p = make({{"w", {4, 2}, Init::glorot, 0, false, Space::type()}}, 0);
  EXPECT_EQ(p.list()[0].shape, (Shape{3, 4, 2}));
  const auto bound = static_cast<float>(std::sqrt(6.0 / 6));
  const auto all = values(p);
  for (const float x : all.at("w")) EXPECT_LE(std::abs(x), bound) << "each type has the bound of its own matrix";
}

TEST(Parameters, OfTrainingAndEvaluationAreTheSame) {
  for (const ModelInfo* info : model_list()) {
    ModelOptions options;
    options.model = info->name;
    options.in_dim = 5;
    options.hidden = 8;
    options.out_dim = 3;
    if (info->name != "lightgcn") options.norm = "batch";
    options.num_edge_types = 3;
    const Blocks blocks = Blocks::full(typed_graph(), 2);
    options = complete_options(options);
    const Parameters training(build_model(options), blocks, 9);
    options.training = false;
    options.loss = "none";
    const Parameters evaluation(build_model(options), blocks, 9);
    EXPECT_EQ(values(training), values(evaluation)) << info->name;
  }
}

}  // namespace
}  // namespace nacre::test

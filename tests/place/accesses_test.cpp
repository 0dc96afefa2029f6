// Compares computed numbers of reads with sampled batches, for every sampler.
#include "nacre/place/accesses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre {
namespace {

// Returns a graph whose degrees differ much: the larger v is, the less likely an edge leads to v.
Graph skewed_graph(uint64_t seed, int64_t vertices, int64_t edges, bool undirected) {
  test::Rng rng(seed);
  EdgeList list;
  list.num_nodes = vertices;
  for (int64_t e = 0; e < edges; ++e) {
    const auto pick = [&](double power) {
      return static_cast<NodeId>(static_cast<double>(vertices) * std::pow(rng.uniform(), power));
    };
    list.src.push_back(std::min<NodeId>(pick(2.5), static_cast<NodeId>(vertices - 1)));
    list.dst.push_back(std::min<NodeId>(pick(1.2), static_cast<NodeId>(vertices - 1)));
    list.weight.push_back(static_cast<float>(0.1 + 3 * rng.uniform() * rng.uniform()));
    list.type.push_back(static_cast<uint16_t>(rng.below(3)));
  }
  list.num_types = 3;
  const Graph graph = build_graph(std::move(list), "test");
  return undirected ? make_undirected(graph) : graph;
}

std::vector<NodeId> every_third(int64_t vertices) {
  std::vector<NodeId> train;
  for (int64_t v = 0; v < vertices; v += 3) train.push_back(static_cast<NodeId>(v));
  return train;
}

std::vector<double> ranks(const std::vector<float>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (size_t k = i; k < j; ++k) rank[order[k]] = 0.5 * static_cast<double>(i + j - 1);
    i = j;
  }
  return rank;
}

double rank_correlation(const std::vector<float>& a, const std::vector<float>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = 0.5 * static_cast<double>(x.size() - 1);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

double total(const std::vector<float>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

struct SamplerCase {
  std::string name;
  SampleOptions options;
};

std::vector<SamplerCase> sampler_cases() {
  std::vector<SamplerCase> cases;
  const auto add = [&](const std::string& name, SampleOptions options) { cases.push_back({name, std::move(options)}); };
  add("neighbor", {.fanout = {5, 4, 3}});
  add("neighbor with replacement", {.fanout = {4, 4}, .replace = true});
  add("all neighbours last", {.fanout = {3, -1}});
  add("weighted", {.fanout = {4, 3}, .weighted = true});
  add("weighted with replacement", {.fanout = {4, 3}, .replace = true, .weighted = true});
  add("typed", {.type_fanout = {{2, 1, 0}, {1, -1, 2}}});
  add("typed and weighted", {.type_fanout = {{2, 1, 0}, {1, 2, 2}}, .weighted = true});
  add("layer", {.sampler = "layer", .fanout = {40, 60}});
  add("layer with replacement", {.sampler = "layer", .fanout = {40, 60}, .replace = true});
  add("layer weighted", {.sampler = "layer", .fanout = {40, 60}, .weighted = true});
  add("saint-vertex", {.sampler = "saint-vertex", .layers = 2, .budget = 60, .norm_samples = 1});
  add("saint-edge", {.sampler = "saint-edge", .layers = 2, .budget = 40, .norm_samples = 1});
  add("saint-walk", {.sampler = "saint-walk", .layers = 2, .budget = 30, .walk_length = 2, .norm_samples = 1});
  add("saint-walk of 4", {.sampler = "saint-walk", .layers = 2, .budget = 30, .walk_length = 4, .norm_samples = 1});
  return cases;
}

// Every build draws a small number of batches; NACRE_STRESS_BATCHES=1000000 asks for the number of
// stress tests.
int64_t batches_to_draw(int64_t usual) {
  const char* asked = std::getenv("NACRE_STRESS_BATCHES");
  return asked != nullptr ? std::atoll(asked) : usual;
}

class Accesses : public ::testing::TestWithParam<SamplerCase> {};

TEST_P(Accesses, AreThoseOfSampledBatches) {
  const bool subgraphs = sampler_info(GetParam().options.sampler).draws_subgraph;
  for (const bool undirected : {false, true}) {
    SCOPED_TRACE(undirected ? "undirected" : "directed");
    const int64_t vertices = subgraphs ? 300 : 3000;
    const Graph graph = skewed_graph(7, vertices, undirected ? 4 * vertices : 8 * vertices, undirected);
    const std::vector<NodeId> train = every_third(vertices);
    const AccessRequest request{&graph, GetParam().options, train, 16};
    const std::vector<float> expected = access_probabilities(request);
    const std::vector<float> counted = presampled_accesses(request, batches_to_draw(subgraphs ? 20'000 : 4000));
    const double load = total(expected) / total(counted);
    const double correlation = rank_correlation(expected, counted);
    EXPECT_NEAR(load, 1, 0.03);
    EXPECT_GE(correlation, 0.99);
    if (std::getenv("NACRE_STRESS_BATCHES") == nullptr) continue;
    std::printf("%-26s %-10s expected/counted rows %.4f, rank correlation %.5f\n", GetParam().name.c_str(),
                undirected ? "undirected" : "directed", load, correlation);
  }
}

TEST_P(Accesses, AreFiniteOnEveryGraph) {
  for (const test::GraphCase& c : test::random_graphs(3)) {
    SCOPED_TRACE(c.name);
    SampleOptions options = GetParam().options;
    if (options.weighted && !c.graph.weighted() && c.graph.num_edges() > 0) continue;
    if (!options.type_fanout.empty()) {
      if (!c.graph.typed()) continue;
      for (std::vector<int>& hop : options.type_fanout) hop.resize(static_cast<size_t>(c.graph.num_edge_types()), 1);
    }
    const std::vector<NodeId> train = every_third(c.graph.num_nodes());
    const AccessRequest request{&c.graph, options, train, 2};
    const std::vector<float> reads = access_probabilities(request);
    const auto most = static_cast<float>(batches_of_epoch(request));
    ASSERT_EQ(static_cast<int64_t>(reads.size()), c.graph.num_nodes());
    for (const float each : reads) EXPECT_TRUE(each >= 0 && each <= most * 1.00001f) << each << " of " << most;
    // Checks that the rows with 0 expected reads are exactly those that no batch can have.
    const std::vector<float> counted = presampled_accesses(request, 200);
    for (size_t v = 0; v < reads.size(); ++v) {
      if (reads[v] == 0) {
        EXPECT_EQ(counted[v], 0) << "vertex " << v;
      }
    }
  }
}

TEST_P(Accesses, DoNotDependOnTheNumberOfThreads) {
  const Graph graph = skewed_graph(5, 5000, 20'000, true);
  const std::vector<NodeId> train = every_third(5000);
  const AccessRequest request{&graph, GetParam().options, train, 100};
  const int threads = num_threads();
  set_num_threads(1);
  const std::vector<float> alone = access_probabilities(request), counted = presampled_accesses(request, 9);
  set_num_threads(3);
  EXPECT_EQ(access_probabilities(request), alone);
  EXPECT_EQ(presampled_accesses(request, 9), counted);
  set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(Samplers, Accesses, ::testing::ValuesIn(sampler_cases()), [](const auto& param) {
  std::string name = param.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

// One batch of all training vertices that takes all neighbours leaves nothing to chance.
TEST(AccessesWithoutChoice, AreTheNeighbourhoodItself) {
  for (const test::GraphCase& c : test::random_graphs(11, 40)) {
    SCOPED_TRACE(c.name);
    const std::vector<NodeId> train{0};
    const AccessRequest request{&c.graph, {.fanout = {-1, -1}}, train, 8};
    EXPECT_EQ(access_probabilities(request), presampled_accesses(request, 1));
  }
}

// A path is a tree, on which the computation is exact. Only vertex 0 is a seed, each hop draws one
// of the two neighbours, and vertex 1 is known after hop 0.
TEST(AccessesOnATree, AreExact) {
  EdgeList list;
  list.num_nodes = 4;
  list.src = {0, 1, 1, 2, 2, 3};
  list.dst = {1, 0, 2, 1, 3, 2};
  const Graph graph = build_graph(std::move(list), "test");
  const std::vector<NodeId> train{0};
  const std::vector<float> reads = access_probabilities({&graph, {.fanout = {1, 1, 1}}, train, 1});
  EXPECT_FLOAT_EQ(reads[0], 1);
  EXPECT_FLOAT_EQ(reads[1], 1);
  EXPECT_FLOAT_EQ(reads[2], 0.75f);  // vertex 1 draws it in hop 1 or 2
  EXPECT_FLOAT_EQ(reads[3], 0.25f);  // vertex 2 is known after hop 1, and draws in hop 2
}

TEST(AccessesOfAWrongRequest, AreRefused) {
  const Graph graph = skewed_graph(5, 50, 200, false);
  const std::vector<NodeId> train{0};
  EXPECT_THROW(access_probabilities({&graph, {.fanout = {0}}, train, 1}), UserError);
  EXPECT_THROW(access_probabilities({&graph, {.sampler = "none"}, train, 1}), UserError);
  EXPECT_THROW(access_probabilities({&graph, {.fanout = {1}}, train, 0}), UserError);
  EXPECT_EQ(total(access_probabilities({&graph, {.fanout = {1}}, {}, 4})), 0);
}

}  // namespace
}  // namespace nacre

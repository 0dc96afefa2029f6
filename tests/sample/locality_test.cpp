// Tests locality-aware sampling: what it prefers, that it stays unbiased, and how its scale adapts.
// The seeds of the statistical tests are fixed. With random seeds, one of them would fail by chance
// once in a thousand runs.
#include "nacre/sample/locality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "checks.h"
#include "nacre/base/error.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

// Returns a graph of `vertices` vertices, each of which has between 0 and `most` in-edges.
Graph random_graph(uint64_t seed, int64_t vertices, int64_t most) {
  Rng rng(seed);
  EdgeList list;
  list.num_nodes = vertices;
  for (int64_t v = 0; v < vertices; ++v) {
    for (int64_t degree = rng.below(most + 1); degree > 0; --degree) {
      list.src.push_back(static_cast<NodeId>(rng.below(vertices)));
      list.dst.push_back(static_cast<NodeId>(v));
      list.weight.push_back(static_cast<float>(rng.uniform(0.2, 2)));
      list.type.push_back(static_cast<uint16_t>(rng.below(2)));
    }
  }
  list.num_types = 2;
  return build_graph(std::move(list), "test");
}

std::vector<uint8_t> every_fourth(int64_t vertices) {
  std::vector<uint8_t> local(static_cast<size_t>(vertices), 0);
  for (size_t v = 0; v < local.size(); v += 4) local[v] = 1;
  return local;
}

// A sampler that prefers every fourth vertex.
struct NearSampler {
  NearSampler(const Graph& graph, SampleOptions options, double scale, int64_t most = 8)
      : sampler(graph, std::move(options)),
        locality(std::make_shared<Locality>(graph, every_fourth(graph.num_nodes()), sampler.layers(), most)) {
    locality->set_scale(scale);
    sampler.draw_with(locality_sampler(sampler, locality));
  }
  Sampler sampler;
  std::shared_ptr<Locality> locality;
};

std::vector<SampleOptions> all_options() {
  return {{.fanout = {3, 2}, .seed = 1},
          {.fanout = {3, 2}, .replace = true, .seed = 2},
          {.fanout = {2, 3}, .weighted = true, .seed = 3},
          {.fanout = {2, 3}, .replace = true, .weighted = true, .seed = 4},
          {.type_fanout = {{2, 1}, {1, 2}}, .seed = 5},
          {.sampler = "layer", .fanout = {8, 10}, .seed = 6},
          {.sampler = "layer", .fanout = {8, 10}, .replace = true, .seed = 7},
          {.sampler = "layer", .fanout = {8, 10}, .weighted = true, .seed = 8}};
}

TEST(Locality, PrefersVerticesWithMostPathsToLocalOnes) {
  // Vertices 0 and 1 are local. Edges lead from both to vertex 2 and from one of them to vertex 3,
  // from vertices 2 and 3 to vertex 4, and from vertex 3 to vertex 5.
  EdgeList list;
  list.num_nodes = 6;
  list.src = {0, 1, 0, 2, 3, 3};
  list.dst = {2, 2, 3, 4, 4, 5};
  const Graph graph = build_graph(std::move(list), "test");
  const std::vector<uint8_t> local{1, 1, 0, 0, 0, 0};
  const Locality one(graph, local, 3, 1), two(graph, local, 3, 2);
  const auto marks = [](std::span<const uint8_t> values) { return std::vector<uint8_t>(values.begin(), values.end()); };
  EXPECT_EQ(marks(one.preferred(2)), local);
  EXPECT_EQ(marks(one.preferred(1)), (std::vector<uint8_t>{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(marks(one.preferred(0)), (std::vector<uint8_t>{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(marks(two.preferred(1)), (std::vector<uint8_t>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(marks(two.preferred(0)), (std::vector<uint8_t>{0, 0, 0, 0, 1, 1}));
}

TEST(Locality, WithScaleOneChangesNothing) {
  const Graph graph = random_graph(1, 60, 9);
  for (const SampleOptions& options : all_options()) {
    const NearSampler near(graph, options, 1);
    const Sampler plain(graph, options);
    const std::vector<NodeId> seeds{3, 1, 4, 15, 9};
    for (uint64_t batch = 0; batch < 5; ++batch) {
      expect_equal(near.sampler.sample(seeds, {0, batch}), plain.sample(seeds, {0, batch}));
    }
  }
}

TEST(Locality, GivesWholeSamplesOnEveryGraph) {
  for (const GraphCase& c : random_graphs(5)) {
    SCOPED_TRACE(c.name);
    for (SampleOptions options : all_options()) {
      if (options.weighted && !c.graph.weighted() && c.graph.num_edges() > 0) continue;
      if (!options.type_fanout.empty()) {
        if (!c.graph.typed()) continue;
        for (std::vector<int>& hop : options.type_fanout) hop.resize(static_cast<size_t>(c.graph.num_edge_types()), 1);
      }
      const NearSampler near(c.graph, options, 5);
      const std::vector<NodeId> seeds = all_vertices(c.graph);
      for (uint64_t batch = 0; batch < 4; ++batch) check_sample(c.graph, near.sampler.sample(seeds, {1, batch}), seeds);
    }
  }
}

// The mean scale of every edge is 1. With e edges, the largest of e deviations is compared with its
// quantile at 1 - 0.001 / e.
TEST(Locality, ScalesOfEdgesAreUnbiased) {
  const Graph graph = random_graph(2, 40, 8);
  for (const double scale : {2.0, 8.0}) {
    for (const SampleOptions& options : all_options()) {
      SCOPED_TRACE(options.seed);
      const NearSampler near(graph, options, scale);
      const EdgeMeans means = scale_means(near.sampler, all_vertices(graph), 6000);
      for (size_t e = 0; e < means.mean.size(); ++e) {
        EXPECT_NEAR(means.mean[e], 1, 4.7 * means.error[e] + 1e-6) << "edge " << e;
      }
      EXPECT_NEAR(means.total, static_cast<double>(graph.num_edges()), 3.5 * means.total_error + 1e-6);
    }
  }
}

// Sums over two hops, which are linear in the rows of the input, are unbiased as well.
TEST(Locality, SumsOverTwoHopsAreUnbiased) {
  const Graph graph = random_graph(3, 50, 7);
  Rng rng(4);
  std::vector<double> input;
  for (int64_t v = 0; v < graph.num_nodes(); ++v) input.push_back(rng.uniform(-1, 2));
  const auto add_up = [&](const std::vector<double>& values) {
    std::vector<double> sums(values.size(), 0);
    for (int64_t v = 0; v < graph.num_nodes(); ++v) {
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e)
        sums[static_cast<size_t>(v)] += values[graph.col_idx()[e]];
    }
    return sums;
  };
  const std::vector<double> exact = add_up(add_up(input));
  const std::vector<NodeId> seeds{0, 7, 11, 23, 42};
  constexpr int batches = 5000;
  for (const SampleOptions& options : all_options()) {
    SCOPED_TRACE(options.seed);
    const NearSampler near(graph, options, 4);
    std::vector<double> sum(seeds.size(), 0), squares(seeds.size(), 0);
    for (uint64_t batch = 0; batch < batches; ++batch) {
      const Sample sample = near.sampler.sample(seeds, {2, batch});
      std::vector<double> values;
      for (const NodeId v : sample.vertices) values.push_back(input[v]);
      for (size_t l = 0; l < sample.blocks.size(); ++l) {
        const Graph& block = sample.blocks[l];
        std::vector<double> next(static_cast<size_t>(block.num_dst()), 0);
        for (int64_t v = 0; v < block.num_dst(); ++v) {
          for (int64_t e = block.row_ptr()[v]; e < block.row_ptr()[v + 1]; ++e) {
            const double weight = sample.scale[l].empty() ? 1 : sample.scale[l][e];
            next[static_cast<size_t>(v)] += weight * values[block.col_idx()[e]];
          }
        }
        values = std::move(next);
      }
      for (size_t i = 0; i < seeds.size(); ++i) {
        sum[i] += values[i];
        squares[i] += values[i] * values[i];
      }
    }
    for (size_t i = 0; i < seeds.size(); ++i) {
      const double mean = sum[i] / batches;
      const double error = std::sqrt(std::max(0.0, squares[i] / batches - mean * mean) / batches);
      EXPECT_NEAR(mean, exact[seeds[i]], 4.1 * error + 1e-6) << "seed " << seeds[i];
    }
  }
}

TEST(Locality, RaisesTheShareOfLocalRows) {
  const Graph graph = random_graph(6, 4000, 30);
  std::vector<NodeId> seeds;
  for (NodeId v = 1; v < 200; v += 2) seeds.push_back(v);
  for (const bool layer : {false, true}) {
    const SampleOptions options =
        layer ? SampleOptions{.sampler = "layer", .fanout = {200, 400}} : SampleOptions{.fanout = {4, 4}};
    double before = 0;
    for (const double scale : {1.0, 2.0, 4.0, 8.0}) {
      const NearSampler near(graph, options, scale, 500);
      int64_t local = 0, all = 0;
      for (uint64_t batch = 0; batch < 10; ++batch) {
        const Sample sample = near.sampler.sample(seeds, {0, batch});
        all += sample.vertices.size();
        for (const NodeId v : sample.vertices) local += v % 4 == 0 ? 1 : 0;
      }
      const double share = static_cast<double>(local) / static_cast<double>(all);
      EXPECT_GT(share, before * 1.1) << "scale " << scale;
      before = share;
    }
    EXPECT_GT(before, 0.4);
  }
}

TEST(Locality, OfSubgraphsIsRefused) {
  const Graph graph = random_graph(7, 30, 4);
  const Sampler sampler(graph, {.sampler = "saint-vertex", .layers = 2, .budget = 5, .norm_samples = 1});
  const auto locality = std::make_shared<Locality>(graph, every_fourth(30), 2);
  EXPECT_THROW(locality_sampler(sampler, locality), UserError);
}

TEST(LocalityScale, FollowsAlgorithmTwo) {
  LocalityScale s;
  s.after_epoch(0.5);
  EXPECT_EQ(s.scale, 2);
  s.after_epoch(0.3);
  EXPECT_EQ(s.scale, 4);
  s.after_epoch(0.1);  // loading takes too little time, so the scale goes back to the middle
  EXPECT_EQ(s.scale, 3);
  s.after_epoch(0.17);  // loading takes a share of the time between both limits
  EXPECT_TRUE(s.fixed);
  s.after_epoch(0.9);
  EXPECT_EQ(s.scale, 3);

  LocalityScale idle;  // loading never takes long
  idle.after_epoch(0.01);
  EXPECT_TRUE(idle.fixed);
  EXPECT_EQ(idle.scale, 1);

  LocalityScale most;
  for (int epoch = 0; epoch < 6; ++epoch) most.after_epoch(0.9);
  EXPECT_EQ(most.scale, 8);
  EXPECT_TRUE(most.fixed);
}

}  // namespace
}  // namespace nacre::test

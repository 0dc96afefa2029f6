// Statistical tests with fixed seeds. Counts are compared by chi-square with its quantiles at
// 0.0005 and 0.9995, and means of scales with 1, at 4.5 standard errors.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "checks.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

// Returns the quantile by Wilson and Hilferty's approximation, which is exact to about 1 % here.
double chi_square_quantile(double degrees, double normal) {
  const double spread = 2 / (9 * degrees);
  return degrees * std::pow(1 - spread + normal * std::sqrt(spread), 3);
}

void expect_chi_square(double statistic, double degrees) {
  EXPECT_LT(statistic, chi_square_quantile(degrees, 3.29));
  EXPECT_GT(statistic, chi_square_quantile(degrees, -3.29));
}

// Returns how often each set of edges came up in the first hop from vertex 0.
std::map<std::vector<int64_t>, int> count_sets(const Graph& graph, SampleOptions options, int batches) {
  options.seed = 11;
  const Sampler sampler(graph, options);
  const auto batch_sampler = sampler.make_batch_sampler();
  const NodeId seed = 0;
  std::map<std::vector<int64_t>, int> counts;
  for (int b = 0; b < batches; ++b) {
    batch_sampler->begin({&seed, 1}, {.epoch = 1, .batch = static_cast<uint64_t>(b)});
    batch_sampler->pick(0);
    batch_sampler->insert(0);
    batch_sampler->reindex(0);
    const Sample sample = batch_sampler->finish();
    ++counts[{sample.edges[0].begin(), sample.edges[0].end()}];
  }
  return counts;
}

std::vector<double> count_edges(const Graph& graph, const SampleOptions& options, int batches) {
  std::vector<double> counts(static_cast<size_t>(graph.num_edges()), 0);
  for (const auto& [set, count] : count_sets(graph, options, batches)) {
    for (const int64_t e : set) counts[static_cast<size_t>(e)] += count;
  }
  return counts;
}

SampleOptions fanout(int count, bool replace = false, bool weighted = false) {
  SampleOptions options;
  options.fanout = {count};
  options.replace = replace;
  options.weighted = weighted;
  return options;
}

TEST(Uniform, EveryEdgeIsEquallyLikely) {
  constexpr int batches = 4000;
  for (const auto& [degree, count] : {std::pair{20, 5}, std::pair{7, 6}, std::pair{100, 40}, std::pair{70, 33}}) {
    SCOPED_TRACE(degree);
    // Counts of edges drawn without replacement are correlated; the factor (d - 1) / d compensates
    // for it.
    const double share = static_cast<double>(count) / degree, variance = batches * share * (1 - share);
    double statistic = 0;
    for (const double n : count_edges(star(degree), fanout(count), batches)) {
      statistic += (n - batches * share) * (n - batches * share) / variance * (degree - 1) / degree;
    }
    expect_chi_square(statistic, degree - 1);
    statistic = 0;
    for (const double n : count_edges(star(degree), fanout(count, true), batches)) {
      statistic += (n - batches * share) * (n - batches * share) / (batches * share);
    }
    expect_chi_square(statistic, degree - 1);
  }
}

TEST(Uniform, EverySetIsEquallyLikely) {
  constexpr int batches = 8000;
  const auto counts = count_sets(star(6), fanout(3), batches);
  ASSERT_EQ(counts.size(), 20u);
  double statistic = 0;
  for (const auto& [set, n] : counts) statistic += (n - batches / 20.0) * (n - batches / 20.0) / (batches / 20.0);
  expect_chi_square(statistic, 19);
}

TEST(Weighted, FrequenciesFollowTheWeights) {
  constexpr int batches = 20000;
  const std::vector<float> weights = {1, 2, 0, 3, 4};
  const Graph graph = star(5, weights);
  for (const bool replace : {false, true}) {
    const int draws = replace ? 3 : 1;
    double statistic = 0;
    const auto counts = count_edges(graph, fanout(draws, replace, true), batches);
    for (size_t e = 0; e < weights.size(); ++e) {
      const double expected = batches * draws * weights[e] / 10.0;
      if (weights[e] == 0) {
        EXPECT_EQ(counts[e], 0);
      } else {
        statistic += (counts[e] - expected) * (counts[e] - expected) / expected;
      }
    }
    expect_chi_square(statistic, 3);
  }
  // Two edges are drawn without replacement, one after the other.
  double statistic = 0;
  const auto pairs = count_sets(graph, fanout(2, false, true), batches);
  EXPECT_EQ(pairs.size(), 6u);
  for (const auto& [set, n] : pairs) {
    ASSERT_EQ(set.size(), 2u);
    const double a = weights[static_cast<size_t>(set[0])] / 10.0, b = weights[static_cast<size_t>(set[1])] / 10.0;
    const double expected = batches * (a * b / (1 - a) + b * a / (1 - b));
    statistic += (n - expected) * (n - expected) / expected;
  }
  expect_chi_square(statistic, 5);
}

// Vertex 0 is reached from 2 and 3, vertex 1 only from 2: the importances are (1/2)² + 1² and
// (1/2)².
TEST(Layer, VerticesAreDrawnByTheirImportance) {
  EdgeList list;
  list.num_nodes = 4;
  list.src = {2, 3, 2};
  list.dst = {0, 0, 1};
  const Graph graph = build_graph(list, "importance");
  constexpr int batches = 6000;
  const std::vector<NodeId> seeds = {0, 1};
  for (const bool replace : {false, true}) {
    SampleOptions options = fanout(1, replace);
    options.sampler = "layer";
    const Sampler sampler(graph, options);
    int third = 0;
    for (int b = 0; b < batches; ++b) {
      const Sample sample = sampler.sample(seeds, {.epoch = 1, .batch = static_cast<uint64_t>(b)});
      ASSERT_EQ(sample.vertices.size(), 3);
      third += static_cast<int>(sample.vertices[2] == 3);
    }
    EXPECT_NEAR(third / static_cast<double>(batches), 1 / 6.0, 3.5 * std::sqrt(5 / 36.0 / batches));
  }
}

void expect_unbiased(const Graph& graph, const SampleOptions& options, int batches) {
  const auto seeds = all_vertices(graph);
  const EdgeMeans means = scale_means(Sampler(graph, options), seeds, batches);
  for (size_t e = 0; e < means.mean.size(); ++e) {
    EXPECT_NEAR(means.mean[e], 1, 4.5 * means.error[e] + 1e-6) << "edge " << e;
  }
  // The sum of all is far more certain than each alone.
  EXPECT_NEAR(means.total, static_cast<double>(graph.num_edges()), 4.5 * means.total_error + 1e-6);
  EXPECT_LE(means.total_error, 0.03 * static_cast<double>(graph.num_edges()));
}

TEST(Scale, IsUnbiasedForEverySampler) {
  for (const auto& [name, graph] : random_graphs(21, 12)) {
    SCOPED_TRACE(name);
    for (const std::string kind : {"neighbor", "layer"}) {
      for (const bool replace : {false, true}) {
        for (const bool weighted : {false, true}) {
          if (weighted && !graph.weighted()) continue;
          SCOPED_TRACE(kind + (replace ? " replace" : "") + (weighted ? " weighted" : ""));
          SampleOptions options = fanout(kind == "layer" ? 5 : 2, replace, weighted);
          options.sampler = kind;
          expect_unbiased(graph, options, 10000);
        }
      }
    }
    if (graph.typed()) {
      SampleOptions options;
      options.type_fanout = {{1, 2, -1, 1}};
      expect_unbiased(graph, options, 2500);
    }
  }
}

// Given that a vertex is in the subgraph, the expected scale of each of its edges is 1. The
// expected loss scale times the chance of being drawn is also 1, but for one factor.
void expect_saint_normalised(const Graph& graph, const SampleOptions& options, int batches) {
  const Sampler sampler(graph, options);
  const auto nodes = static_cast<size_t>(graph.num_nodes()), edges = static_cast<size_t>(graph.num_edges());
  std::vector<double> seen(nodes, 0), loss(nodes, 0), scale(edges, 0), squares(edges, 0);
  const auto batch_sampler = sampler.make_batch_sampler();
  double loss_sum = 0, size_sum = 0;
  for (int b = 0; b < batches; ++b) {
    batch_sampler->begin({}, {.epoch = 1, .batch = static_cast<uint64_t>(b)});
    batch_sampler->pick(0);
    batch_sampler->insert(0);
    batch_sampler->reindex(0);
    const Sample sample = batch_sampler->finish();
    for (int64_t v = 0; v < sample.vertices.size(); ++v) {
      seen[sample.vertices[v]] += 1;
      loss[sample.vertices[v]] += sample.loss_scale[v];
      loss_sum += sample.loss_scale[v];
      size_sum += 1;
    }
    for (int64_t e = 0; e < sample.edges[0].size(); ++e) {
      scale[static_cast<size_t>(sample.edges[0][e])] += sample.scale[0][e];
      squares[static_cast<size_t>(sample.edges[0][e])] += sample.scale[0][e] * sample.scale[0][e];
    }
  }
  // There are two errors: that of the chances counted beforehand (a share of 1 / √(samples ·
  // chance), taken as 5 %), and that of this mean.
  for (int64_t v = 0; v < graph.num_nodes(); ++v) {
    const auto at = static_cast<size_t>(v);
    ASSERT_GT(seen[at], 100);
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
      const double mean = scale[static_cast<size_t>(e)] / seen[at];
      const double error = std::sqrt((squares[static_cast<size_t>(e)] / seen[at] - mean * mean) / seen[at]);
      EXPECT_NEAR(mean, 1, 4.5 * (error + 0.05)) << "edge " << e;
    }
    const double expected = size_sum / static_cast<double>(nodes) / batches;  // the common factor
    EXPECT_NEAR(loss[at] / batches / expected, 1, 0.2) << "vertex " << v;
  }
  EXPECT_NEAR(loss_sum / size_sum, 1, 0.02);
}

TEST(Saint, ScalesMakeUpForUnequalChances) {
  for (const auto& [name, graph] : random_graphs(5, 10)) {
    if (name != "plain" && name != "self_loops") continue;
    for (const std::string kind : {"saint-vertex", "saint-edge", "saint-walk"}) {
      SCOPED_TRACE(name + " " + kind);
      SampleOptions options;
      options.sampler = kind;
      options.layers = 1;
      options.budget = 4;
      options.norm_samples = 2000;
      expect_saint_normalised(graph, options, 2000);
    }
  }
}

}  // namespace
}  // namespace nacre::test

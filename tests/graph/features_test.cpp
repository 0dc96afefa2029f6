#include "nacre/graph/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/edges.h"
#include "nacre/base/parallel.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

using F = GraphFeature;

double quotient(double a, double b) { return b > 0 ? a / b : 0; }

// Computes the figures of a list of lengths by their definitions, in the order of the features.
std::vector<double> plain_lengths(std::vector<double> lengths) {
  if (lengths.empty()) return std::vector<double>(13, 0.0);
  std::sort(lengths.begin(), lengths.end());
  const auto n = static_cast<double>(lengths.size());
  const auto rank = [&](double share) { return lengths[static_cast<size_t>(std::max(1.0, std::ceil(share * n))) - 1]; };
  double sum = 0;
  for (const double d : lengths) sum += d;
  const double mean = sum / n;
  double squares = 0;
  double cubes = 0;
  double differences = 0;
  for (const double d : lengths) {
    squares += (d - mean) * (d - mean);
    cubes += (d - mean) * (d - mean) * (d - mean);
    for (const double e : lengths) differences += std::abs(d - e);
  }
  const double deviation = std::sqrt(squares / n);
  return {mean,
          deviation,
          quotient(deviation, mean),
          deviation > 0 ? cubes / n / std::pow(deviation, 3) : 0,
          lengths.front(),
          rank(0.1),
          lengths[(lengths.size() - 1) / 2],
          rank(0.9),
          rank(0.99),
          lengths.back(),
          quotient(differences, 2 * n * sum),
          static_cast<double>(std::count(lengths.begin(), lengths.end(), 0.0)) / n,
          quotient(lengths.back(), sum)};
}

// Counts distinct pairs of a source and a run of `rows` rows.
double plain_distinct(const std::vector<Edge>& edges, NodeId rows) {
  std::set<std::pair<NodeId, NodeId>> seen;
  for (const Edge& e : edges) seen.insert({e.dst / rows, e.src});
  return quotient(static_cast<double>(seen.size()), static_cast<double>(edges.size()));
}

double plain_correlation(const std::vector<double>& x, const std::vector<double>& y) {
  double mean_x = 0;
  double mean_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / static_cast<double>(x.size());
    mean_y += y[i] / static_cast<double>(x.size());
  }
  double both = 0;
  double xx = 0;
  double yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  // Rounding leaves a tiny spread where all values are equal.
  return xx > 1e-9 && yy > 1e-9 ? both / std::sqrt(xx * yy) : 0;
}

// Computes the features of the places of the edges.
void plain_places(const Graph& graph, const std::vector<Edge>& edges, GraphFeatures& f) {
  const auto n = static_cast<double>(edges.size());
  const auto columns = static_cast<double>(graph.num_src());
  double gaps = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto [dst, src] = std::pair<int64_t, int64_t>(edges[i].dst, edges[i].src);
    const auto distance = static_cast<double>(std::abs(dst - src));
    f[F::distance_mean] += distance / n / columns;
    f[F::distance_log] += std::log2(1 + distance) / n;
    f[F::bandwidth] = std::max(f[F::bandwidth], distance / columns);
    f[F::self_loops] += dst == src ? 1 / n : 0;
    if (i > 0 && edges[i - 1].dst == dst) {
      ++gaps;
      f[F::gap_log] += std::log2(1 + static_cast<double>(src - static_cast<int64_t>(edges[i - 1].src)));
      f[F::duplicates] += edges[i - 1].src == src ? 1 / n : 0;
    }
    double age = 16384;
    for (size_t j = 0; j < i; ++j) {
      if (edges[j].src == src && edges[j].dst / 16384 == dst / 16384) {
        age = static_cast<double>(dst - static_cast<int64_t>(edges[j].dst));
      }
    }
    f[F::reuse_log] += std::log2(1 + age) / n;
    f[F::repeated] += age == 1 ? 1 / n : 0;
  }
  f[F::gap_log] = quotient(f[F::gap_log], gaps);
}

GraphFeatures plain_features(const Graph& graph, int64_t own) {
  GraphFeatures f;
  const std::vector<Edge> edges = edges_of(graph);
  std::vector<double> rows(graph.num_dst(), 0);
  std::vector<double> columns(graph.num_src(), 0);
  for (const Edge& e : edges) {
    ++rows[e.dst];
    ++columns[e.src];
  }
  const auto n = static_cast<double>(edges.size());
  f[F::rows] = static_cast<double>(rows.size());
  f[F::columns] = static_cast<double>(columns.size());
  f[F::nonzeros] = n;
  f[F::density] = quotient(n, f[F::rows] * f[F::columns]);
  f[F::edge_types] = graph.num_edge_types();
  const std::vector<double> row_figures = plain_lengths(rows);
  const std::vector<double> column_figures = plain_lengths(columns);
  std::copy(row_figures.begin(), row_figures.end(), f.value.begin() + static_cast<int>(F::row_mean));
  std::copy(column_figures.begin(), column_figures.end(), f.value.begin() + static_cast<int>(F::column_mean));
  double change = 0;
  for (size_t v = 1; v < rows.size(); ++v) change += std::abs(rows[v] - rows[v - 1]);
  f[F::row_change] = quotient(quotient(change, f[F::rows] - 1), f[F::row_mean]);
  f[F::distinct_64] = plain_distinct(edges, 64);
  f[F::distinct_1024] = plain_distinct(edges, 1024);
  f[F::distinct_16384] = plain_distinct(edges, 16384);
  plain_places(graph, edges, f);
  f[F::halo_columns] = quotient(f[F::columns] - static_cast<double>(own), f[F::columns]);
  std::vector<double> x;
  std::vector<double> y;
  for (const Edge& e : edges) {
    f[F::halo_nonzeros] += e.src >= own ? 1 / n : 0;
    x.push_back(rows[e.dst]);
    y.push_back(columns[e.src]);
  }
  f[F::assortativity] = plain_correlation(x, y);
  return f;
}

void expect_features(const Graph& graph, int64_t own) {
  const GraphFeatures found = graph_features(graph, own);
  const GraphFeatures expected = plain_features(graph, own);
  for (int i = 0; i < kGraphFeatures; ++i) {
    const auto f = static_cast<F>(i);
    EXPECT_TRUE(std::isfinite(found[f])) << graph_feature_info(f).name;
    EXPECT_NEAR(found[f], expected[f], 1e-7 * (1 + std::abs(expected[f]))) << graph_feature_info(f).name;
  }
}

TEST(GraphFeatures, AtLeastThirtyWithNamesOfTheirOwn) {
  EXPECT_GE(kGraphFeatures, 30);
  std::set<std::string_view> names;
  for (int i = 0; i < kGraphFeatures; ++i) {
    const GraphFeatureInfo& info = graph_feature_info(static_cast<F>(i));
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.about.empty());
  }
  EXPECT_EQ(graph_feature_info(F::row_change).name, "row_change");
  EXPECT_EQ(graph_feature_info(F::column_longest).name, "column_longest");
  EXPECT_EQ(graph_feature_info(F::assortativity).name, "assortativity");
}

TEST(GraphFeatures, RandomGraphsAgainstTheDefinitions) {
  for (const int64_t nodes : {3, 12, 90}) {
    for (const GraphCase& c : random_graphs(7, nodes)) {
      SCOPED_TRACE(c.name);
      expect_features(c.graph, c.graph.num_src());
      expect_features(c.graph, c.graph.num_src() / 2);
    }
  }
  for (const BlocksCase& c : random_blocks(3, 2)) {
    SCOPED_TRACE(c.name);
    for (const Graph& block : c.layers) expect_features(block, block.num_dst());
  }
  expect_features(Graph(), 0);
}

TEST(GraphFeatures, AllParallelEdges) {
  EdgeList list;
  list.num_nodes = 1;
  list.src.assign(100, 0);
  list.dst.assign(100, 0);
  const Graph graph = build_graph(list, "test");
  expect_features(graph, 1);
  const GraphFeatures f = graph_features(graph, 1);
  EXPECT_DOUBLE_EQ(f[F::self_loops], 1);
  EXPECT_DOUBLE_EQ(f[F::duplicates], 0.99);
  EXPECT_DOUBLE_EQ(f[F::density], 100);
}

// Several windows of rows, of which a thread walks more than one.
TEST(GraphFeatures, ManyWindowsOnAnyNumberOfThreads) {
  const EdgeList list = random_list({.nodes = 70000, .edges = 200000, .skewed = true, .seed = 5});
  const Graph graph = build_graph(list, "test");
  const std::vector<Edge> edges = edges_of(graph);
  const int before = num_threads();
  std::vector<GraphFeatures> results;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    results.push_back(graph_features(graph, 60000));
  }
  set_num_threads(before);
  EXPECT_EQ(results[0].value, results[1].value);
  EXPECT_EQ(results[0].value, results[2].value);
  EXPECT_DOUBLE_EQ(results[0][F::distinct_64], plain_distinct(edges, 64));
  EXPECT_DOUBLE_EQ(results[0][F::distinct_1024], plain_distinct(edges, 1024));
  EXPECT_DOUBLE_EQ(results[0][F::distinct_16384], plain_distinct(edges, 16384));
}

}  // namespace
}  // namespace nacre::test

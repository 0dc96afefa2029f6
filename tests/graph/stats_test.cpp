#include "nacre/graph/stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

using Pairs = std::vector<std::pair<NodeId, NodeId>>;  // (src, dst)

Graph graph_of(int64_t nodes, const Pairs& pairs) {
  EdgeList edges;
  edges.num_nodes = nodes;
  for (const auto& [s, d] : pairs) {
    edges.src.push_back(s);
    edges.dst.push_back(d);
  }
  return build_graph(std::move(edges), "test");
}

// Computes the definitions without regard to speed.
DegreeStats plain_degrees(std::vector<int64_t> degrees) {
  DegreeStats s;
  if (degrees.empty()) return s;
  std::sort(degrees.begin(), degrees.end());
  const auto n = static_cast<int64_t>(degrees.size());
  const auto at_share = [&](double share) {
    return degrees[static_cast<size_t>(std::ceil(share * static_cast<double>(n))) - 1];
  };
  s.min = degrees.front();
  s.max = degrees.back();
  s.median = degrees[(n - 1) / 2];
  s.p10 = at_share(0.1);
  s.p90 = at_share(0.9);
  s.p99 = at_share(0.99);
  s.zeros = std::count(degrees.begin(), degrees.end(), 0);
  const double sum = std::accumulate(degrees.begin(), degrees.end(), 0.0);
  s.mean = sum / static_cast<double>(n);
  double differences = 0;
  for (const int64_t a : degrees) {
    for (const int64_t b : degrees) differences += static_cast<double>(std::abs(a - b));
  }
  s.gini = sum > 0 ? differences / (2 * static_cast<double>(n) * sum) : 0;
  return s;
}

GraphStats plain_stats(int64_t nodes, const Pairs& pairs) {
  GraphStats s;
  std::vector<int64_t> in(nodes, 0);
  std::vector<int64_t> out(nodes, 0);
  std::vector<int64_t> component(nodes);
  std::iota(component.begin(), component.end(), 0);
  const std::set<std::pair<NodeId, NodeId>> unique(pairs.begin(), pairs.end());
  for (const auto& [a, b] : pairs) {
    ++out[a];
    ++in[b];
    s.self_loops += a == b ? 1 : 0;
    const int64_t from = component[a];
    std::replace(component.begin(), component.end(), from, component[b]);
  }
  s.duplicate_edges = static_cast<int64_t>(pairs.size() - unique.size());
  s.symmetric = std::all_of(unique.begin(), unique.end(), [&](const auto& e) {
    return unique.count({e.second, e.first}) > 0;
  });
  const std::set<int64_t> names(component.begin(), component.end());
  s.components = static_cast<int64_t>(names.size());
  for (const int64_t name : names) {
    s.largest_component = std::max<int64_t>(s.largest_component, std::count(component.begin(), component.end(), name));
  }
  for (int64_t v = 0; v < nodes; ++v) s.isolated += in[v] == 0 && out[v] == 0 ? 1 : 0;
  s.in = plain_degrees(in);
  s.out = plain_degrees(out);
  return s;
}

void expect_equal(const DegreeStats& a, const DegreeStats& b) {
  EXPECT_EQ(a.min, b.min);
  EXPECT_EQ(a.max, b.max);
  EXPECT_EQ(a.median, b.median);
  EXPECT_EQ(a.p10, b.p10);
  EXPECT_EQ(a.p90, b.p90);
  EXPECT_EQ(a.p99, b.p99);
  EXPECT_EQ(a.zeros, b.zeros);
  EXPECT_DOUBLE_EQ(a.mean, b.mean);
  EXPECT_NEAR(a.gini, b.gini, 1e-9);
}

void expect_equal(const GraphStats& a, const GraphStats& b) {
  expect_equal(a.in, b.in);
  expect_equal(a.out, b.out);
  EXPECT_EQ(a.self_loops, b.self_loops);
  EXPECT_EQ(a.duplicate_edges, b.duplicate_edges);
  EXPECT_EQ(a.symmetric, b.symmetric);
  EXPECT_EQ(a.components, b.components);
  EXPECT_EQ(a.largest_component, b.largest_component);
  EXPECT_EQ(a.isolated, b.isolated);
}

TEST(Stats, RandomGraphsAgainstTheDefinitions) {
  uint64_t counter = 0;
  const auto random = [&](uint32_t bound) { return philox(5, 0, counter++)[0] % bound; };
  for (const int64_t nodes : {1, 2, 7, 31, 64, 257}) {
    for (const int64_t edges : {0, 1, 5, 40, 300}) {
      for (const bool symmetric : {false, true}) {
        Pairs pairs;
        for (int64_t i = 0; i < edges; ++i) {
          const NodeId a = random(static_cast<uint32_t>(nodes));
          const NodeId b = random(static_cast<uint32_t>(i % 3 == 0 ? nodes : (nodes + 3) / 4));
          pairs.emplace_back(a, b);
          if (symmetric) pairs.emplace_back(b, a);
        }
        SCOPED_TRACE(std::to_string(nodes) + " nodes, " + std::to_string(edges) + " edges");
        expect_equal(compute_stats(graph_of(nodes, pairs)), plain_stats(nodes, pairs));
      }
    }
  }
}

TEST(Stats, KnownGraphs) {
  const GraphStats none = compute_stats(Graph());
  EXPECT_EQ(none.components, 0);
  EXPECT_TRUE(none.symmetric);
  const GraphStats star = compute_stats(graph_of(5, {{1, 0}, {2, 0}, {3, 0}, {4, 0}}));
  EXPECT_EQ(star.in.max, 4);
  EXPECT_EQ(star.in.zeros, 4);
  EXPECT_NEAR(star.in.gini, 0.8, 1e-12);
  EXPECT_NEAR(star.out.gini, 0.2, 1e-12);
  EXPECT_FALSE(star.symmetric);
  EXPECT_EQ(star.components, 1);
}

// Tests degrees beyond the counting limit, and that the result is the same on any number of
// threads.
TEST(Stats, LargeSkewedGraphOnAnyThreadCount) {
  constexpr int64_t nodes = 200'000;
  Pairs pairs;
  for (NodeId v = 1; v < 150'000; ++v) pairs.emplace_back(v, 0);
  for (NodeId v = 150'000; v + 1 < nodes; ++v) pairs.emplace_back(v + 1, v);
  const Graph graph = graph_of(nodes, pairs);
  std::vector<GraphStats> results;
  const int before = num_threads();
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    results.push_back(compute_stats(graph));
  }
  set_num_threads(before);
  EXPECT_EQ(results[0].in.max, 149'999);
  EXPECT_EQ(results[0].components, 2);
  EXPECT_EQ(results[0].largest_component, 150'000);
  for (const GraphStats& r : results) {
    expect_equal(r, results[0]);
    EXPECT_EQ(r.in.gini, results[0].in.gini);
  }
}

TEST(Stats, Homophily) {
  const Graph graph = graph_of(4, {{0, 1}, {1, 2}, {2, 3}, {3, 3}, {0, 3}});
  EXPECT_DOUBLE_EQ(edge_homophily(graph, std::vector<int32_t>{0, 0, 1, 1}), 3.0 / 5);
  EXPECT_DOUBLE_EQ(edge_homophily(graph, std::vector<int32_t>{0, 0, -1, 1}), 2.0 / 3);
  EXPECT_TRUE(std::isnan(edge_homophily(graph, std::vector<int32_t>{-1, -1, -1, -1})));
}

}  // namespace
}  // namespace nacre

#include "nacre/graph/edge_cover.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/edges.h"
#include "nacre/base/parallel.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

void expect_half(const Graph& graph, const Graph& half, const Array<EdgeId>& numbers, std::vector<int>& seen) {
  EXPECT_EQ(half.num_src(), graph.num_src());
  EXPECT_EQ(half.num_dst(), graph.num_dst());
  EXPECT_EQ(half.num_edge_types(), graph.num_edge_types());
  EXPECT_FALSE(half.weighted());
  ASSERT_EQ(half.num_edges(), numbers.size());
  const std::vector<Edge> all = edges_of(graph), own = edges_of(half);
  for (size_t i = 0; i < own.size(); ++i) {
    const EdgeId number = numbers[static_cast<int64_t>(i)];
    ASSERT_LT(number, all.size());
    EXPECT_TRUE(i == 0 || number > numbers[static_cast<int64_t>(i) - 1]) << "edges keep their order";
    EXPECT_EQ(own[i].dst, all[number].dst);
    EXPECT_EQ(own[i].src, all[number].src);
    EXPECT_EQ(own[i].type, all[number].type);
    ++seen[number];
  }
}

void expect_divided(const Graph& graph, const EdgeCover& cover) {
  std::vector<int> seen(static_cast<size_t>(graph.num_edges()), 0);
  expect_half(graph, cover.at_dst, cover.dst_edges, seen);
  expect_half(graph, cover.at_src, cover.src_edges, seen);
  for (const int times : seen) EXPECT_EQ(times, 1) << "each edge is in one half";
  EXPECT_LE(cover.num_pairs(), std::min(graph.count_pairs(End::src), graph.count_pairs(End::dst)));
  EXPECT_GE(cover.bytes(), graph.num_edges() * 8);
}

// Tries all sets of destination pairs: the edges of the others need their source pairs.
int64_t fewest_pairs(const Graph& graph) {
  const std::vector<Edge> edges = edges_of(graph);
  const PairIndex& at_dst = graph.pairs(End::dst);
  const PairIndex& at_src = graph.pairs(End::src);
  int64_t fewest = graph.num_edges();
  for (uint32_t set = 0; set < 1U << at_dst.num_pairs; ++set) {
    std::set<EdgeId> sources;
    for (size_t e = 0; e < edges.size(); ++e) {
      if ((set >> at_dst.of_edge[static_cast<int64_t>(e)] & 1U) == 0)
        sources.insert(at_src.of_edge[static_cast<int64_t>(e)]);
    }
    fewest = std::min(fewest, static_cast<int64_t>(__builtin_popcount(set)) + static_cast<int64_t>(sources.size()));
  }
  return fewest;
}

TEST(EdgeCover, DividesTheEdgesOfEveryGraph) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "list");
    expect_divided(graph, cover_edges(graph));
    if (HasFailure()) FAIL() << list.num_nodes << " vertices, " << list.src.size() << " edges";
  }
  for (const GraphCase& c : random_graphs(5)) {
    SCOPED_TRACE(c.name);
    expect_divided(c.graph, cover_edges(c.graph));
  }
}

TEST(EdgeCover, TouchesTheFewestPairs) {
  int smaller = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const auto nodes = static_cast<int64_t>(2 + seed % 6);
    const EdgeList list = random_list({.nodes = nodes,
                                       .edges = static_cast<int64_t>(3 + seed % 11),
                                       .typed = seed % 3 != 0,
                                       .skewed = seed % 2 == 0,
                                       .seed = seed});
    const Graph graph = build_graph(list, "list");
    const int64_t pairs = cover_edges(graph).num_pairs();
    ASSERT_EQ(pairs, fewest_pairs(graph)) << "seed " << seed;
    if (pairs < std::min(graph.count_pairs(End::src), graph.count_pairs(End::dst))) ++smaller;
  }
  EXPECT_GT(smaller, 50) << "most graphs gain from both ends";
}

// A hub at each end: all edges belong to the pairs of the hubs.
TEST(EdgeCover, GivesEachHubItsEdges) {
  EdgeList list;
  list.num_nodes = 100;
  for (NodeId v = 2; v < 100; ++v) {
    list.src.insert(list.src.end(), {0, v});
    list.dst.insert(list.dst.end(), {v, 1});
  }
  const EdgeCover cover = cover_edges(build_graph(list, "hubs"));
  EXPECT_EQ(cover.num_pairs(), 2);
  EXPECT_EQ(cover.at_src.num_edges(), 98);
  EXPECT_EQ(cover.at_dst.num_edges(), 98);
}

TEST(EdgeCover, DoesNotDependOnTheNumberOfThreads) {
  const Graph graph = build_graph(random_list({3000, 40000, false, true, true, 9}), "list");
  set_num_threads(1);
  const EdgeCover one = cover_edges(graph);
  set_num_threads(4);
  const EdgeCover four = cover_edges(graph);
  set_num_threads(2);
  EXPECT_TRUE(std::equal(one.dst_edges.begin(), one.dst_edges.end(), four.dst_edges.begin(), four.dst_edges.end()));
  EXPECT_EQ(one.num_pairs(), four.num_pairs());
}

}  // namespace
}  // namespace nacre::test

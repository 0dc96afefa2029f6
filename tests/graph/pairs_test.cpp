// Compares the distinct (vertex, type) pairs of either end with a sorted set of them.
#include "nacre/graph/pairs.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "graph/edges.h"
#include "nacre/base/parallel.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

NodeId own(const Edge& edge, End end) { return end == End::src ? edge.src : edge.dst; }
NodeId far(const Edge& edge, End end) { return end == End::src ? edge.dst : edge.src; }

// Pairs in order, with the positions of their edges.
using Pairs = std::map<std::pair<uint16_t, NodeId>, std::vector<EdgeId>>;

Pairs pairs_of(const std::vector<Edge>& edges, End end) {
  Pairs pairs;
  for (size_t i = 0; i < edges.size(); ++i) {
    pairs[{edges[i].type, own(edges[i], end)}].push_back(static_cast<EdgeId>(i));
  }
  return pairs;
}

void expect_pairs_and_edges(const PairIndex& got, const Pairs& want, const std::vector<Edge>& edges, End end) {
  ASSERT_EQ(got.num_pairs, static_cast<int64_t>(want.size()));
  ASSERT_EQ(got.vertex.size(), got.num_pairs);
  ASSERT_EQ(got.type.size(), got.num_pairs);
  ASSERT_EQ(got.edge_ptr.size(), got.num_pairs + 1);
  ASSERT_EQ(got.edge_ptr[0], 0);
  ASSERT_EQ(got.of_edge.size(), static_cast<int64_t>(edges.size()));
  ASSERT_EQ(got.edge.size(), static_cast<int64_t>(edges.size()));
  ASSERT_EQ(got.other.size(), static_cast<int64_t>(edges.size()));
  int64_t p = 0;
  for (const auto& [pair, positions] : want) {
    ASSERT_EQ(got.type[p], pair.first) << "pair " << p;
    ASSERT_EQ(got.vertex[p], pair.second) << "pair " << p;
    ASSERT_EQ(got.edge_ptr[p + 1] - got.edge_ptr[p], static_cast<int64_t>(positions.size())) << "pair " << p;
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t at = got.edge_ptr[p] + static_cast<int64_t>(i);
      ASSERT_EQ(got.edge[at], positions[i]) << "ascending, so that sums have one order";
      ASSERT_EQ(got.of_edge[positions[i]], static_cast<EdgeId>(p));
      ASSERT_EQ(got.other[at], far(edges[positions[i]], end));
    }
    ++p;
  }
}

void expect_groups(const PairIndex& got, const Pairs& want, int64_t vertices, int types) {
  ASSERT_EQ(got.type_ptr.size(), types + 1);
  ASSERT_EQ(got.vertex_ptr.size(), vertices + 1);
  ASSERT_EQ(got.pair.size(), got.num_pairs);
  std::vector<int64_t> of_type(static_cast<size_t>(types) + 1, 0);
  std::map<NodeId, std::vector<EdgeId>> of_vertex;
  EdgeId p = 0;
  for (const auto& [pair, positions] : want) {
    ++of_type[pair.first + 1U];
    of_vertex[pair.second].push_back(p++);
  }
  for (int t = 0; t < types; ++t) {
    of_type[static_cast<size_t>(t) + 1] += of_type[static_cast<size_t>(t)];
    ASSERT_EQ(got.type_ptr[t + 1], of_type[static_cast<size_t>(t) + 1]) << "type " << t;
  }
  ASSERT_EQ(got.type_ptr[0], 0);
  ASSERT_EQ(got.vertex_ptr[0], 0);
  for (int64_t v = 0; v < vertices; ++v) {
    const std::vector<EdgeId> mine(got.pair.data() + got.vertex_ptr[v], got.pair.data() + got.vertex_ptr[v + 1]);
    ASSERT_EQ(mine, of_vertex[static_cast<NodeId>(v)]) << "vertex " << v << ": by type";
  }
}

void expect_pairs(const Graph& graph) {
  const std::vector<Edge> edges = edges_of(graph);
  for (const End end : {End::src, End::dst}) {
    const PairIndex& got = graph.pairs(end);
    const Pairs want = pairs_of(edges, end);
    expect_pairs_and_edges(got, want, edges, end);
    expect_groups(got, want, end == End::src ? graph.num_src() : graph.num_dst(), graph.num_edge_types());
    const auto entries = static_cast<int64_t>(edges.size());
    EXPECT_GE(got.bytes(), 12 * entries + 18 * got.num_pairs);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Pairs, AreTheDistinctOnesOfEveryGraph) {
  for (const EdgeList& list : all_lists()) {
    expect_pairs(build_graph(list, "list"));
    if (HasFatalFailure()) FAIL() << list.num_nodes << " vertices, " << list.src.size() << " edges";
  }
}

TEST(Pairs, AreTheDistinctOnesOfAwkwardGraphsAndBlocks) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const GraphCase& c : random_graphs(seed)) {
      SCOPED_TRACE(c.name);
      expect_pairs(c.graph);
    }
    for (const BlocksCase& c : random_blocks(seed, 2)) {
      SCOPED_TRACE(c.name);
      for (const Graph& layer : c.layers) expect_pairs(layer);
    }
  }
}

TEST(Pairs, OfAnUntypedGraphAreItsVerticesWithEdges) {
  const Graph graph = build_graph(random_list({30, 40, false, false, true, 5}), "untyped");
  const PairIndex& pairs = graph.pairs(End::dst);
  std::set<NodeId> with_edges;
  for (const Edge& edge : edges_of(graph)) with_edges.insert(edge.dst);
  EXPECT_EQ(std::set<NodeId>(pairs.vertex.begin(), pairs.vertex.end()), with_edges);
  EXPECT_EQ(pairs.type_ptr.size(), 2);
}

TEST(Pairs, NoMoreThanEdgesAndNoFewerThanVerticesWithEdges) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "list");
    for (const End end : {End::src, End::dst}) {
      const int64_t pairs = graph.pairs(end).num_pairs;
      EXPECT_LE(pairs, graph.num_edges());
      std::set<NodeId> vertices;
      for (const Edge& edge : edges_of(graph)) vertices.insert(own(edge, end));
      EXPECT_GE(pairs, static_cast<int64_t>(vertices.size()));
    }
  }
}

// There are enough edges for several chunks, and every array is the same on any number of threads.
TEST(Pairs, AreTheSameOnAnyNumberOfThreads) {
  const EdgeList list = random_list({20000, 300000, false, true, true, 9});
  const auto built = [&](int threads, End end) {
    set_num_threads(threads);
    const PairIndex p = make_pairs(build_graph(list, "list"), end);
    set_num_threads(2);
    return p;
  };
  const auto same = [](const auto& a, const auto& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
  for (const End end : {End::src, End::dst}) {
    const PairIndex one = built(1, end);
    const PairIndex four = built(4, end);
    EXPECT_TRUE(same(one.vertex, four.vertex) && same(one.type, four.type) && same(one.of_edge, four.of_edge));
    EXPECT_TRUE(same(one.edge_ptr, four.edge_ptr) && same(one.edge, four.edge) && same(one.other, four.other));
    EXPECT_TRUE(same(one.type_ptr, four.type_ptr) && same(one.vertex_ptr, four.vertex_ptr) &&
                same(one.pair, four.pair));
  }
}

TEST(Pairs, AreBuiltOnceAndSharedByCopies) {
  const Graph graph = build_graph(random_list({20, 60, false, true, false, 2}), "graph");
  const Graph copy = graph;
  const PairIndex& first = graph.pairs(End::src);
  EXPECT_EQ(&first, &copy.pairs(End::src));
  EXPECT_NE(&first, &graph.pairs(End::dst));
}

}  // namespace
}  // namespace nacre::test

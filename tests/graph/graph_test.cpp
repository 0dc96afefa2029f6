// Tests of Graph: its other orders, its fingerprint, and arrays that are not a graph.
#include "nacre/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "graph/edges.h"
#include "nacre/base/error.h"
#include "nacre/graph/reversed.h"
#include "nacre/graph/transpose.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

TEST(Graph, OutgoingEdgesAreThoseOfABruteForceSearch) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "test");
    EXPECT_FALSE(graph.has_out());
    const OutCsc& out = graph.out();
    EXPECT_TRUE(graph.has_out());
    std::vector<Edge> edges = edges_of(graph);
    // Edges are sorted by source, within a source by destination, then by position.
    std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.src < b.src; });
    ASSERT_EQ(out.dst.size(), graph.num_edges());
    ASSERT_EQ(out.row_ptr.size(), graph.num_src() + 1);
    for (size_t i = 0; i < edges.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      ASSERT_EQ(out.dst[at], edges[i].dst);
      ASSERT_EQ(out.edge_id[at], edges[i].order);
      ASSERT_LE(out.row_ptr[edges[i].src], at);
      ASSERT_GT(out.row_ptr[edges[i].src + 1], at);
    }
    EXPECT_EQ(graph.out_bytes(),
              out.row_ptr.size() * 8 + out.dst.size() * 4 + out.edge_id.size() * 4 + out.dst.size() * 4);
  }
}

// The graph has more vertices than one thread groups by source.
TEST(Graph, VerticesWithoutEdgesChangeNoOrder) {
  EdgeList list = random_list({});
  const Graph graph = build_graph(list, "test");
  list.num_nodes = (int64_t{1} << 22) + 5;
  const Graph large = build_graph(std::move(list), "test");
  ASSERT_TRUE(is_few_edges(graph));
  ASSERT_FALSE(is_few_edges(large));
  ASSERT_EQ(large.out().row_ptr.size(), large.num_src() + 1);
  for (int64_t v = 0; v < large.num_src(); ++v) {
    ASSERT_EQ(large.out().row_ptr[v + 1], graph.out().row_ptr[std::min(v + 1, graph.num_src())]);
  }
  for (int64_t i = 0; i < graph.num_edges(); ++i) {
    ASSERT_EQ(large.out().dst[i], graph.out().dst[i]);
    ASSERT_EQ(large.out().edge_id[i], graph.out().edge_id[i]);
  }
}

TEST(Graph, EdgesBySourceInTheCallersMemory) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "test");
    const OutCsc& out = graph.out();
    const auto edges = static_cast<size_t>(graph.num_edges());
    int64_t longest = 0;
    for (int64_t v = 0; v < graph.num_src(); ++v) longest = std::max(longest, out.row_ptr[v + 1] - out.row_ptr[v]);
    std::vector<uint32_t> offsets(static_cast<size_t>(graph.num_src() + 2), 77), dst(edges), edge_id(edges);
    EXPECT_EQ(group_by_source(graph, EdgesBySource<uint32_t>{offsets.data(), dst.data(), nullptr}), longest);
    EXPECT_TRUE(std::equal(out.dst.begin(), out.dst.end(), dst.begin()));
    EXPECT_TRUE(std::equal(out.row_ptr.begin(), out.row_ptr.end(), offsets.begin()));
    EXPECT_EQ(group_by_source(graph, EdgesBySource<uint32_t>{offsets.data(), nullptr, edge_id.data()}), longest);
    EXPECT_TRUE(std::equal(out.edge_id.begin(), out.edge_id.end(), edge_id.begin()));
  }
}

TEST(Graph, DestinationOfEveryEdge) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "test");
    ASSERT_EQ(graph.edge_dst().size(), graph.num_edges());
    int64_t i = 0;
    for (const Edge& edge : edges_of(graph)) ASSERT_EQ(graph.edge_dst()[i++], edge.dst);
  }
}

TEST(Graph, ReversedEdgesKeepWeightsAndTypes) {
  for (const GraphCase& c : random_graphs(6, 30)) {
    SCOPED_TRACE(c.name);
    const Graph back = reversed_graph(c.graph);
    ASSERT_EQ(back.num_edges(), c.graph.num_edges());
    EXPECT_EQ(back.num_edge_types(), c.graph.num_edge_types());
    EXPECT_EQ(back.weighted(), c.graph.weighted());
    EXPECT_EQ(back.typed(), c.graph.typed());
    for (int64_t i = 0; i < back.num_edges(); ++i) {
      const EdgeId e = c.graph.out().edge_id[i];
      EXPECT_EQ(back.edge_dst()[i], c.graph.col_idx()[e]);
      EXPECT_EQ(back.col_idx()[i], c.graph.edge_dst()[e]);
      EXPECT_TRUE(!back.weighted() || back.edge_weight()[i] == c.graph.edge_weight()[e]);
      EXPECT_TRUE(!back.typed() || back.edge_type()[i] == c.graph.edge_type()[e]);
    }
  }
}

TEST(Graph, CopiesShareWhatIsBuiltLater) {
  const Graph graph = build_graph(random_list({}), "test");
  const Graph copy = graph;
  const OutCsc& out = graph.out();
  EXPECT_TRUE(copy.has_out());
  EXPECT_EQ(copy.out().dst.data(), out.dst.data());
}

TEST(Graph, SeveralThreadsMayAskAtOnce) {
  const Graph graph = build_graph(random_list({2000, 40000, false, false, true, 3}), "test");
  std::vector<const void*> seen(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] {
      graph.fingerprint();
      graph.edge_dst();
      seen[i] = graph.out().dst.data();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const void* p : seen) EXPECT_EQ(p, seen[0]);
}

TEST(Fingerprint, IsThatOfTheContents) {
  const EdgeList list = random_list({200, 3000, true, true, false, 5});
  const uint64_t print = build_graph(list, "a").fingerprint();
  EXPECT_EQ(build_graph(list, "b").fingerprint(), print);
  EdgeList shuffled = list;
  std::reverse(shuffled.src.begin(), shuffled.src.end());
  std::reverse(shuffled.dst.begin(), shuffled.dst.end());
  std::reverse(shuffled.weight.begin(), shuffled.weight.end());
  std::reverse(shuffled.type.begin(), shuffled.type.end());
  // The input order matters only between copies of one edge.
  EdgeList unique = list;
  unique.weight.assign(unique.weight.size(), 1);
  unique.type.assign(unique.type.size(), 0);
  shuffled.weight = unique.weight;
  shuffled.type = unique.type;
  EXPECT_EQ(build_graph(shuffled, "c").fingerprint(), build_graph(unique, "d").fingerprint());
}

TEST(Fingerprint, ChangesWithEveryPart) {
  const EdgeList list = random_list({200, 3000, true, true, false, 5});
  const uint64_t print = build_graph(list, "a").fingerprint();
  const std::vector<std::function<void(EdgeList&)>> changes = {
      [](EdgeList& l) { l.num_nodes += 1; },
      [](EdgeList& l) { l.src[7] = (l.src[7] + 1) % 200; },
      [](EdgeList& l) { l.dst[7] = (l.dst[7] + 1) % 200; },
      [](EdgeList& l) { l.weight[7] *= 1.0001F; },
      [](EdgeList& l) { l.type[7] = static_cast<uint16_t>((l.type[7] + 1) % 6); },
      [](EdgeList& l) { l.weight.clear(); },
      [](EdgeList& l) { l.type.clear(); },
      [](EdgeList& l) {
        l.src.pop_back();
        l.dst.pop_back();
        l.weight.pop_back();
        l.type.pop_back();
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    EdgeList other = list;
    changes[i](other);
    EXPECT_NE(build_graph(other, "b").fingerprint(), print) << "change " << i;
  }
}

TEST(GraphArrays, DamageIsNoticed) {
  const Graph good = build_graph(random_list({10, 40, true, true, false, 6}), "test");
  const auto replaced = [](const auto& array, int64_t at, auto value) {
    std::vector<std::decay_t<decltype(array[0])>> copy(array.begin(), array.end());
    copy[static_cast<size_t>(at)] = value;
    return copy;
  };
  const auto shorter = [](const auto& array) {
    return std::vector<std::decay_t<decltype(array[0])>>(array.begin(), array.end() - 1);
  };
  const std::vector<std::pair<const char*, std::function<void(GraphArrays&)>>> damages = {
      {"more destinations", [](GraphArrays& a) { a.num_src = a.num_dst - 1; }},
      {"negative", [](GraphArrays& a) { a.num_dst = -1, a.row_ptr = {}; }},
      {"no offsets", [](GraphArrays& a) { a.row_ptr = {}; }},
      {"few offsets", [&](GraphArrays& a) { a.row_ptr = shorter(good.row_ptr()); }},
      {"first offset", [&](GraphArrays& a) { a.row_ptr = replaced(good.row_ptr(), 0, 1); }},
      {"last offset", [&](GraphArrays& a) { a.row_ptr = replaced(good.row_ptr(), 10, 39); }},
      {"decreasing", [&](GraphArrays& a) { a.row_ptr = replaced(good.row_ptr(), 4, 1000); }},
      {"negative offset", [&](GraphArrays& a) { a.row_ptr = replaced(good.row_ptr(), 4, -1); }},
      {"source", [&](GraphArrays& a) { a.col_idx = replaced(good.col_idx(), 20, NodeId{10}); }},
      {"few sources", [&](GraphArrays& a) { a.col_idx = shorter(good.col_idx()); }},
      {"few weights", [&](GraphArrays& a) { a.edge_weight = shorter(good.edge_weight()); }},
      {"few types", [&](GraphArrays& a) { a.edge_type = shorter(good.edge_type()); }},
      {"type", [&](GraphArrays& a) { a.edge_type = replaced(good.edge_type(), 39, uint16_t{6}); }},
      {"nodes", [](GraphArrays& a) { a.num_src = INT64_C(0x100000000); }},
  };
  EXPECT_NO_THROW(Graph(good.arrays(), "good"));
  for (const auto& [what, damage] : damages) {
    GraphArrays arrays = good.arrays();
    damage(arrays);
    try {
      const Graph graph(arrays, "some.nacre");
      ADD_FAILURE() << what << " was accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("some.nacre: ", 0), 0U) << error.what();
    }
  }
}

TEST(Graph, AnEmptyOneHasNothing) {
  const Graph graph;
  EXPECT_EQ(graph.num_nodes(), 0);
  EXPECT_EQ(graph.num_edges(), 0);
  EXPECT_EQ(graph.out().row_ptr.size(), 1);
  EXPECT_EQ(graph.edge_dst().size(), 0);
  EXPECT_EQ(graph.fingerprint(), Graph().fingerprint());
}

}  // namespace
}  // namespace nacre::test

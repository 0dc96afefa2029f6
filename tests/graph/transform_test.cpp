// Compares graphs made from graphs with loops over plain edge lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/edges.h"
#include "nacre/base/error.h"

namespace nacre::test {
namespace {

TEST(AddSelfLoops, GivesEveryVertexExactlyTheLoopsItLacks) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "test");
    const Graph looped = add_self_loops(graph);
    EdgeList want = list;
    std::set<NodeId> has;
    for (size_t i = 0; i < list.src.size(); ++i) {
      if (list.src[i] == list.dst[i]) has.insert(list.src[i]);
    }
    for (int64_t v = 0; v < list.num_nodes; ++v) {
      const auto id = static_cast<NodeId>(v);
      if (has.contains(id)) continue;
      want.src.push_back(id);
      want.dst.push_back(id);
      if (!list.weight.empty()) want.weight.push_back(1);
      if (!list.type.empty()) want.type.push_back(static_cast<uint16_t>(list.num_types));
    }
    EXPECT_TRUE(same_edges(edges_of(looped), sorted_edges(want)));
    EXPECT_EQ(looped.num_edge_types(), list.num_types + (list.type.empty() ? 0 : 1));
    if (!list.type.empty()) continue;
    EXPECT_EQ(add_self_loops(looped).fingerprint(), looped.fingerprint()) << "twice is once";
  }
}

TEST(AddSelfLoops, NeedsATypeForTheLoops) {
  EdgeList list = random_list({.typed = true});
  list.num_types = 65535;
  EXPECT_THROW(add_self_loops(build_graph(list, "test")), UserError);
}

TEST(MakeUndirected, HasEveryEdgeBothWaysOnce) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "test");
    // Maps (dst, src) to weight and type of the first edge: forward edges in the graph's order,
    // then reversed ones.
    std::map<std::pair<NodeId, NodeId>, std::pair<float, uint16_t>> want;
    const std::vector<Edge> edges = edges_of(graph);
    for (const Edge& e : edges) want.emplace(std::pair(e.dst, e.src), std::pair(e.weight, e.type));
    for (const Edge& e : edges) want.emplace(std::pair(e.src, e.dst), std::pair(e.weight, e.type));
    std::vector<Edge> all;
    for (const auto& [ends, value] : want) all.push_back({ends.first, ends.second, 0, value.first, value.second});
    const Graph both = make_undirected(graph);
    EXPECT_TRUE(same_edges(edges_of(both), all));
    EXPECT_EQ(both.num_edge_types(), graph.num_edge_types());
    EXPECT_EQ(make_undirected(both).fingerprint(), both.fingerprint()) << "twice is once";
  }
}

// Files of other programs may have rows in any order.
TEST(Transforms, TakeRowsInAnyOrder) {
  const Graph sorted = build_graph(random_list({200, 2000, false, false, false, 3}), "test");
  GraphArrays arrays = sorted.arrays();
  std::vector<NodeId> col(sorted.col_idx().begin(), sorted.col_idx().end());
  for (int64_t v = 0; v < sorted.num_dst(); ++v)
    std::reverse(col.begin() + sorted.row_ptr()[v], col.begin() + sorted.row_ptr()[v + 1]);
  arrays.col_idx = std::move(col);
  const Graph reversed(std::move(arrays), "test");
  ASSERT_NE(reversed.fingerprint(), sorted.fingerprint());
  EXPECT_EQ(add_self_loops(reversed).fingerprint(), add_self_loops(sorted).fingerprint());
  EXPECT_EQ(make_undirected(reversed).fingerprint(), make_undirected(sorted).fingerprint());
}

TEST(AssignRelations, ByTheEndsAlone) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "test");
    const Graph typed = assign_relations(graph, 5);
    ASSERT_EQ(typed.num_edge_types(), 5);
    ASSERT_EQ(typed.num_edges(), graph.num_edges());
    std::map<std::pair<NodeId, NodeId>, uint16_t> seen;
    for (const Edge& e : edges_of(typed)) {
      ASSERT_LT(e.type, 5);
      ASSERT_EQ(seen.emplace(std::pair(e.src, e.dst), e.type).first->second, e.type);
    }
    EXPECT_EQ(assign_relations(graph, 5).fingerprint(), typed.fingerprint());
  }
}

TEST(AssignRelations, SpreadsEvenly) {
  const Graph graph = assign_relations(build_graph(random_list({3000, 40000, false, false, false, 8}), "test"), 4);
  std::array<int, 4> count{};
  for (const uint16_t type : graph.edge_type()) ++count[type];
  for (const int n : count) EXPECT_NEAR(n, 10000, 500);
}

TEST(AssignRelations, WantsASensibleNumber) {
  const Graph graph = build_graph(random_list({}), "test");
  EXPECT_THROW(assign_relations(graph, 0), InternalError);
  EXPECT_THROW(assign_relations(graph, 65536), InternalError);
  EXPECT_EQ(assign_relations(graph, 65535).num_edge_types(), 65535);
}

}  // namespace
}  // namespace nacre::test

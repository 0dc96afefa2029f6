#include "nacre/graph/parts.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "graph/edges.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

constexpr PartShape kShapes[] = {PartShape::scattered, PartShape::range, PartShape::ball};

TEST(Parts, DrawnVerticesAreDistinctAndRepeatable) {
  for (const GraphCase& c : random_graphs(11, 40)) {
    SCOPED_TRACE(c.name);
    for (const PartShape shape : kShapes) {
      for (const int64_t count : {int64_t{0}, int64_t{1}, c.graph.num_nodes() / 2, c.graph.num_nodes()}) {
        const std::vector<NodeId> drawn = draw_vertices(c.graph, shape, count, 3);
        EXPECT_EQ(static_cast<int64_t>(drawn.size()), count);
        EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
        EXPECT_EQ(std::set<NodeId>(drawn.begin(), drawn.end()).size(), drawn.size());
        EXPECT_TRUE(drawn.empty() || drawn.back() < c.graph.num_nodes());
        EXPECT_EQ(drawn, draw_vertices(c.graph, shape, count, 3));
      }
    }
  }
}

TEST(Parts, ABallOnAPathIsConnected) {
  EdgeList list;
  list.num_nodes = 50;
  for (NodeId v = 1; v < 50; ++v) {
    list.src.insert(list.src.end(), {v, v - 1});
    list.dst.insert(list.dst.end(), {v - 1, v});
  }
  const std::vector<NodeId> ball = draw_vertices(build_graph(list, "test"), PartShape::ball, 10, 4);
  EXPECT_EQ(ball.back() - ball.front(), 9);
}

// Every edge to an own vertex occurs once, with its weight and type.
TEST(Parts, HoldTheEdgesOfTheirVertices) {
  for (const GraphCase& c : random_graphs(5, 30)) {
    for (const PartShape shape : kShapes) {
      for (const bool halo : {false, true}) {
        SCOPED_TRACE(c.name);
        const std::vector<NodeId> own = draw_vertices(c.graph, shape, (c.graph.num_nodes() + 1) / 2, 9);
        const std::set<NodeId> inside(own.begin(), own.end());
        const GraphPart part = part_of(c.graph, own, halo);
        EXPECT_EQ(part.own, static_cast<int64_t>(own.size()));
        EXPECT_EQ(part.graph.num_src(), static_cast<int64_t>(part.vertices.size()));
        std::vector<Edge> expected;
        for (const Edge& e : edges_of(c.graph)) {
          if (inside.count(e.dst) > 0 && (halo || inside.count(e.src) > 0)) expected.push_back(e);
        }
        std::vector<Edge> found = edges_of(part.graph);
        for (Edge& e : found) {
          EXPECT_LT(e.dst, part.own);
          e = {part.vertices[e.dst], part.vertices[e.src], 0, e.weight, e.type};
        }
        const auto order = [](const Edge& a, const Edge& b) {
          return std::tuple(a.dst, a.src, a.type, a.weight) < std::tuple(b.dst, b.src, b.type, b.weight);
        };
        std::sort(expected.begin(), expected.end(), order);
        std::sort(found.begin(), found.end(), order);
        EXPECT_TRUE(same_edges(found, expected));
        EXPECT_TRUE(halo || part.vertices.size() == own.size());
      }
    }
  }
}

}  // namespace
}  // namespace nacre::test

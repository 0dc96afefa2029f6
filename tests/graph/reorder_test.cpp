#include "nacre/graph/reorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "support/rng.h"

namespace nacre {
namespace {

Graph from_pairs(int64_t nodes, const std::vector<std::pair<NodeId, NodeId>>& pairs) {
  EdgeList list;
  list.num_nodes = nodes;
  for (const auto& [src, dst] : pairs) {
    list.src.push_back(src);
    list.dst.push_back(dst);
  }
  return build_graph(std::move(list), "test");
}

std::vector<NodeId> shuffled(int64_t nodes, uint64_t seed) {
  std::vector<NodeId> names(static_cast<size_t>(nodes));
  std::iota(names.begin(), names.end(), 0U);
  test::Rng rng(seed);
  for (int64_t i = nodes - 1; i > 0; --i) std::swap(names[i], names[rng.below(i + 1)]);
  return names;
}

std::vector<Graph> ugly_graphs() {
  std::vector<Graph> graphs;
  graphs.push_back(from_pairs(1, {}));
  graphs.push_back(from_pairs(5, {}));
  graphs.push_back(from_pairs(1, {{0, 0}, {0, 0}}));
  graphs.push_back(from_pairs(6, {{0, 1}, {0, 1}, {1, 1}, {4, 3}}));
  std::vector<std::pair<NodeId, NodeId>> star(299);
  for (NodeId v = 1; v < 300; ++v) star[v - 1] = {v, 0};
  graphs.push_back(from_pairs(303, star));
  std::vector<std::pair<NodeId, NodeId>> random(4000);
  test::Rng rng(5);
  for (auto& [src, dst] : random) {
    src = static_cast<NodeId>(rng.below(500));
    dst = static_cast<NodeId>(rng.below(500));
  }
  graphs.push_back(from_pairs(520, random));
  return graphs;
}

constexpr Reorder kAll[] = {Reorder::none, Reorder::degree, Reorder::rcm, Reorder::rabbit};

TEST(Reorder, OrdersArePermutationsOnAnyThreadCount) {
  for (const Graph& graph : ugly_graphs()) {
    for (const Reorder how : kAll) {
      set_num_threads(1);
      const Array<NodeId> order = vertex_order(graph, how);
      std::vector<NodeId> sorted(order.begin(), order.end());
      std::sort(sorted.begin(), sorted.end());
      for (size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], i) << reorder_name(how);
      ASSERT_EQ(order.size(), graph.num_nodes());
      set_num_threads(3);
      const Array<NodeId> again = vertex_order(graph, how);
      EXPECT_TRUE(std::equal(order.begin(), order.end(), again.begin()));
    }
  }
}

// An order that is applied and undone changes nothing. In between, it is the same graph under other
// names.
TEST(Reorder, PermutedIsTheSameGraph) {
  EdgeList list;
  list.num_nodes = 40;
  test::Rng rng(11);
  for (int i = 0; i < 300; ++i) {
    list.src.push_back(static_cast<NodeId>(rng.below(40)));
    list.dst.push_back(static_cast<NodeId>(rng.below(40)));
    list.weight.push_back(static_cast<float>(i));
    list.type.push_back(static_cast<uint16_t>(rng.below(3)));
  }
  list.num_types = 3;
  const Graph graph = build_graph(list, "test");
  const Array<NodeId> order = shuffled(40, 3);
  const Array<NodeId> new_id = inverse_order(order);
  const Graph moved = permuted(graph, order, new_id);
  EdgeList renamed = list;
  for (auto* column : {&renamed.src, &renamed.dst}) {
    for (NodeId& v : *column) v = new_id[v];
  }
  EXPECT_EQ(moved.fingerprint(), build_graph(std::move(renamed), "test").fingerprint());
  EXPECT_EQ(permuted(moved, new_id, order).fingerprint(), graph.fingerprint());
}

TEST(Reorder, DegreePutsHubsFirst) {
  const Graph graph = from_pairs(6, {{1, 4}, {2, 4}, {3, 4}, {4, 2}, {2, 1}});
  const Array<NodeId> order = degree_order(graph);
  EXPECT_EQ(std::vector<NodeId>(order.begin(), order.end()), (std::vector<NodeId>{4, 2, 1, 3, 0, 5}));
}

int64_t bandwidth(const Graph& graph, const Array<NodeId>& new_id) {
  int64_t widest = 0;
  for (int64_t i = 0; i < graph.num_edges(); ++i) {
    const int64_t d = static_cast<int64_t>(new_id[graph.col_idx()[i]]) - new_id[graph.edge_dst()[i]];
    widest = std::max(widest, std::abs(d));
  }
  return widest;
}

TEST(Reorder, RcmFindsThePathAndTheGrid) {
  const std::vector<NodeId> names = shuffled(400, 7);
  std::vector<std::pair<NodeId, NodeId>> path;
  std::vector<std::pair<NodeId, NodeId>> grid;
  for (NodeId v = 0; v + 1 < 400; ++v) path.emplace_back(names[v], names[v + 1]);
  for (NodeId y = 0; y < 20; ++y) {
    for (NodeId x = 0; x < 20; ++x) {
      if (x + 1 < 20) grid.emplace_back(names[20 * y + x], names[20 * y + x + 1]);
      if (y + 1 < 20) grid.emplace_back(names[20 * y + x], names[20 * y + 20 + x]);
    }
  }
  const Graph line = from_pairs(400, path);
  EXPECT_EQ(bandwidth(line, inverse_order(rcm_order(line))), 1);
  const Graph square = from_pairs(400, grid);
  EXPECT_LE(bandwidth(square, inverse_order(rcm_order(square))), 21);
  EXPECT_GT(bandwidth(square, inverse_order(vertex_order(square, Reorder::none))), 200);
}

// Communities of 16 have many edges inside and few between them, so each must get consecutive
// numbers.
TEST(Reorder, RabbitKeepsCommunitiesTogether) {
  constexpr int64_t groups = 20;
  constexpr int64_t size = 16;
  const std::vector<NodeId> names = shuffled(groups * size, 9);
  std::vector<std::pair<NodeId, NodeId>> pairs;
  test::Rng rng(2);
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t a = 0; a < size; ++a) {
      for (int64_t b = 0; b < size; ++b) {
        if (a != b && rng.below(2) == 0) pairs.emplace_back(names[g * size + a], names[g * size + b]);
      }
    }
    pairs.emplace_back(names[g * size], names[(g + 1) % groups * size + 3]);
  }
  const Graph graph = from_pairs(groups * size, pairs);
  const Array<NodeId> new_id = inverse_order(rabbit_order(graph));
  for (int64_t g = 0; g < groups; ++g) {
    NodeId low = 0xFFFFFFFF;
    NodeId high = 0;
    for (int64_t a = 0; a < size; ++a) {
      low = std::min(low, new_id[names[g * size + a]]);
      high = std::max(high, new_id[names[g * size + a]]);
    }
    EXPECT_EQ(high - low + 1, size) << g;
  }
}

TEST(Reorder, NamesAreKnown) {
  for (const Reorder how : kAll) EXPECT_EQ(parse_reorder(reorder_name(how)), how);
  EXPECT_THROW(parse_reorder("hilbert"), UserError);
}

}  // namespace
}  // namespace nacre

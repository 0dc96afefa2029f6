#include "nacre/partition/local_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/graph/reversed.h"
#include "nacre/partition/stats.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

std::vector<LocalGraph> all_parts(const Graph& graph, const Partition& partition) {
  std::vector<LocalGraph> parts;
  for (int p = 0; p < partition.num_parts; ++p) parts.push_back(local_graph(graph, partition, p));
  return parts;
}

NodeId global(const LocalGraph& local, NodeId v) {
  return v < local.num_own() ? local.own[v] : local.halo[v - local.num_own()];
}

// Every own vertex has the edges that it has in the whole graph, in their order.
void expect_same_edges(const Graph& graph, const LocalGraph& local) {
  ASSERT_EQ(local.graph.num_dst(), local.num_own());
  ASSERT_EQ(local.graph.num_src(), local.num_own() + local.num_halo());
  ASSERT_EQ(local.graph.num_edge_types(), graph.num_edge_types());
  for (int64_t i = 0; i < local.num_own(); ++i) {
    const int64_t from = graph.row_ptr()[local.own[i]], to = local.graph.row_ptr()[i];
    ASSERT_EQ(local.graph.in_degree(i), graph.in_degree(local.own[i]));
    for (int64_t k = 0; k < local.graph.in_degree(i); ++k) {
      EXPECT_EQ(global(local, local.graph.col_idx()[to + k]), graph.col_idx()[from + k]);
      if (graph.weighted()) {
        EXPECT_EQ(local.graph.edge_weight()[to + k], graph.edge_weight()[from + k]);
      }
      if (graph.typed()) {
        EXPECT_EQ(local.graph.edge_type()[to + k], graph.edge_type()[from + k]);
      }
    }
  }
}

// Exchanges a number for each vertex as devices would exchange rows.
void expect_exchange(const std::vector<LocalGraph>& parts) {
  std::vector<std::vector<NodeId>> halo;
  for (const LocalGraph& local : parts) halo.emplace_back(local.num_halo(), 0xFFFFFFFF);
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const PeerRows& peer : parts[p].peers) {
      const auto& back = parts[peer.part].peers;
      const auto mine = std::find_if(back.begin(), back.end(),
                                     [&](const PeerRows& other) { return other.part == static_cast<int>(p); });
      ASSERT_NE(mine, back.end());
      ASSERT_EQ(peer.send.size(), mine->halo_end - mine->halo_begin);
      for (int64_t i = 0; i < peer.send.size(); ++i) {
        ASSERT_LT(peer.send[i], parts[p].num_own());
        halo[peer.part][mine->halo_begin + i] = parts[p].own[peer.send[i]];
      }
    }
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    EXPECT_TRUE(std::equal(halo[p].begin(), halo[p].end(), parts[p].halo.begin(), parts[p].halo.end()));
  }
}

// Vertices that no edge connects with other parts come first, then those that only send their rows,
// then those that need rows of others.
void expect_order(const Graph& graph, const Partition& partition, int part, const LocalGraph& local) {
  std::vector<char> needs(graph.num_nodes(), 0), sends(graph.num_nodes(), 0);
  for (int64_t v = 0; v < graph.num_nodes(); ++v) {
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
      const NodeId from = graph.col_idx()[e];
      if (partition.part[from] == partition.part[v]) continue;
      needs[v] = 1;
      sends[from] = 1;
    }
  }
  ASSERT_LE(local.alone, local.inside);
  ASSERT_LE(local.inside, local.num_own());
  for (int64_t i = 0; i < local.num_own(); ++i) {
    const NodeId v = local.own[i];
    EXPECT_EQ(needs[v] == 0, i < local.inside);
    EXPECT_EQ(needs[v] == 0 && sends[v] == 0, i < local.alone);
    const bool first = i == 0 || i == local.alone || i == local.inside;
    EXPECT_TRUE(first || local.own[i - 1] < v) << "each group is ascending";
  }
  const Array<NodeId> rows = rows_by_number(local);
  EXPECT_EQ(rows.empty(), std::is_sorted(local.own.begin(), local.own.end()));
  for (int64_t i = 1; i < rows.size(); ++i) EXPECT_LT(local.own[rows[i - 1]], local.own[rows[i]]);
  const LocalGraph back = local_graph(reversed_graph(graph), partition, part, EdgeSense::reversed);
  EXPECT_TRUE(std::equal(local.own.begin(), local.own.end(), back.own.begin(), back.own.end()));
  EXPECT_EQ(back.alone, local.alone);
  EXPECT_EQ(back.inside, local.inside);
}

void expect_good(const Graph& graph, const Partition& partition) {
  const std::vector<LocalGraph> parts = all_parts(graph, partition);
  const std::vector<double> shares(partition.num_parts, 1);
  const PartitionStats stats = partition_stats(graph, partition, shares, {});
  int64_t own = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    own += parts[p].num_own();
    expect_order(graph, partition, static_cast<int>(p), parts[p]);
    for (const NodeId v : parts[p].own) EXPECT_EQ(partition.part[v], static_cast<int>(p));
    EXPECT_EQ(parts[p].num_halo(), stats.parts[p].halo);
    expect_same_edges(graph, parts[p]);
  }
  EXPECT_EQ(own, graph.num_nodes());
  expect_exchange(parts);
}

TEST(LocalGraph, RandomGraphsAndPartitions) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const GraphCase& c : random_graphs(seed, 25)) {
      SCOPED_TRACE(c.name);
      Rng rng(seed);
      for (const int parts : {1, 2, 3, 7, 30}) {
        std::vector<int32_t> part(c.graph.num_nodes());
        // The last part stays empty if there are several.
        for (int32_t& p : part) p = static_cast<int32_t>(rng.below(std::max(1, parts - 1)));
        expect_good(c.graph, {parts, part});
      }
    }
  }
}

TEST(LocalGraph, NumbersInTheWholeGraph) {
  Rng rng(5);
  for (const GraphCase& c : random_graphs(9, 40)) {
    SCOPED_TRACE(c.name);
    std::vector<int32_t> part;
    for (int64_t v = 0; v < c.graph.num_nodes(); ++v) part.push_back(static_cast<int32_t>(rng.below(3)));
    const Partition partition{4, part};  // part 3 is empty
    const Graph back = reversed_graph(c.graph);
    for (int p = 0; p < 4; ++p) {
      const LocalGraph local = local_graph(c.graph, partition, p);
      const Array<NodeId> vertices = vertex_numbers(local);
      const Array<EdgeId> edges = edge_numbers(c.graph, local);
      ASSERT_EQ(edges.size(), local.graph.num_edges());
      for (int64_t e = 0; e < edges.size(); ++e) {
        EXPECT_EQ(c.graph.col_idx()[edges[e]], vertices[local.graph.col_idx()[e]]);
        EXPECT_EQ(c.graph.edge_dst()[edges[e]], vertices[local.graph.edge_dst()[e]]);
      }
      EXPECT_EQ(count_far_destinations(c.graph, partition, p), local_graph(back, partition, p).num_halo());
    }
  }
}

TEST(LocalGraph, AllEdgesCut) {
  for (const GraphCase& c : random_graphs(9, 25)) {
    SCOPED_TRACE(c.name);
    std::vector<int32_t> part(c.graph.num_nodes());
    std::iota(part.begin(), part.end(), 0);
    expect_good(c.graph, {static_cast<int>(part.size()), part});
  }
}

TEST(LocalGraph, OnePartIsTheWholeGraph) {
  for (const GraphCase& c : random_graphs(10, 25)) {
    const LocalGraph local = local_graph(c.graph, {1, std::vector<int32_t>(c.graph.num_nodes(), 0)}, 0);
    EXPECT_EQ(local.graph.fingerprint(), c.graph.fingerprint()) << c.name;
    EXPECT_TRUE(local.peers.empty());
  }
}

TEST(LocalGraph, PartitionsByEveryMethod) {
  for (const PartitionMethod method : {PartitionMethod::metis, PartitionMethod::fennel, PartitionMethod::random}) {
    for (const GraphCase& c : random_graphs(12, 60)) {
      SCOPED_TRACE(c.name);
      PartitionOptions options;
      options.method = method;
      options.use_cache = false;
      expect_good(c.graph, partition_graph(c.graph, std::vector<double>{1, 0, 2, 3}, options));
    }
  }
}

TEST(LocalGraph, MistakesOfTheCaller) {
  const Partition partition{1, std::vector<int32_t>{0}};
  EXPECT_THROW(local_graph(Graph(), partition, 0), InternalError);
  EXPECT_THROW(local_graph(Graph(), {1, std::vector<int32_t>{}}, 1), InternalError);
}

}  // namespace
}  // namespace nacre::test

#include "nacre/partition/stats.h"

#include <gtest/gtest.h>

#include <set>

#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

Partition random_partition(const Graph& graph, int parts, uint64_t seed) {
  Rng rng(seed);
  std::vector<int32_t> part(graph.num_nodes());
  for (int32_t& p : part) p = static_cast<int32_t>(rng.below(parts));
  return {parts, part};
}

TEST(PartitionStats, AgreesWithPlainCounting) {
  for (const int parts : {1, 3, 70}) {
    for (const GraphCase& c : random_graphs(11, 50)) {
      const Partition p = random_partition(c.graph, parts, 5);
      const std::vector<double> shares(parts, 1);
      const PartitionStats stats = partition_stats(c.graph, p, shares, {});
      int64_t cut = 0;
      std::vector<std::set<NodeId>> halo(parts);
      std::set<std::pair<NodeId, int>> sent;
      for (int64_t v = 0; v < c.graph.num_nodes(); ++v) {
        for (int64_t i = c.graph.row_ptr()[v]; i < c.graph.row_ptr()[v + 1]; ++i) {
          const NodeId u = c.graph.col_idx()[i];
          if (p.part[u] == p.part[v]) continue;
          ++cut;
          halo[p.part[v]].insert(u);
          sent.insert({u, p.part[v]});
        }
      }
      EXPECT_EQ(stats.cut_edges, cut) << c.name;
      EXPECT_EQ(stats.volume, std::ssize(sent)) << c.name;
      int64_t vertices = 0, edges = 0, rows = 0;
      for (int q = 0; q < parts; ++q) {
        EXPECT_EQ(stats.parts[q].halo, std::ssize(halo[q])) << c.name;
        EXPECT_LE(stats.parts[q].inside, stats.parts[q].vertices);
        vertices += stats.parts[q].vertices;
        edges += stats.parts[q].edges;
        rows += stats.parts[q].sent;
      }
      EXPECT_EQ(vertices, c.graph.num_nodes());
      EXPECT_EQ(edges, c.graph.num_edges());
      EXPECT_EQ(rows, stats.volume);
    }
  }
}

TEST(PartitionStats, WorkAndTargets) {
  EdgeList list;
  list.num_nodes = 4;
  list.src = {0, 1, 2};
  list.dst = {1, 2, 3};
  const Graph path = build_graph(list, "path");
  PartitionOptions options;
  options.row_work = 2;
  options.edge_work = 1;
  const PartitionStats stats =
      partition_stats(path, {2, std::vector<int32_t>{0, 0, 1, 1}}, std::vector<double>{1, 1}, options);
  EXPECT_EQ(stats.cut_edges, 1);
  EXPECT_EQ(stats.parts[0].work, 5);
  EXPECT_EQ(stats.parts[1].work, 6);
  EXPECT_EQ(stats.parts[0].target, 5.5);
  EXPECT_EQ(stats.parts[0].inside, 2);
  EXPECT_EQ(stats.parts[1].inside, 1);
  EXPECT_EQ(stats.between, (std::vector<int64_t>{1, 0, 1, 1}));
  EXPECT_NEAR(stats.imbalance(), 0.5 / 5.5, 1e-12);
}

}  // namespace
}  // namespace nacre::test

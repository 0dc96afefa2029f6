// Cuts are compared with those of METIS alone on the whole graph, as gpmetis makes them.
#include <gtest/gtest.h>

#include "nacre/base/error.h"
#include "nacre/partition/metis.h"
#include "nacre/partition/refine.h"
#include "nacre/partition/stats.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

// Returns a graph with communities of 500 vertices whose numbers are spread out. Three of four
// edges stay inside a community.
Graph communities(int64_t nodes, int64_t edges, bool directed) {
  Rng rng(8);
  EdgeList list;
  list.num_nodes = nodes;
  const int64_t groups = nodes / 500;
  for (int64_t i = 0; i < edges; ++i) {
    const int64_t u = rng.below(nodes);
    const int64_t v = rng.uniform() < 0.75 ? rng.below(nodes / groups) * groups + u % groups : rng.below(nodes);
    if (v >= nodes) continue;
    list.src.push_back(static_cast<NodeId>(u));
    list.dst.push_back(static_cast<NodeId>(v));
  }
  const Graph graph = build_graph(std::move(list), "communities");
  return directed ? graph : make_undirected(graph);
}

int64_t cut_of_metis(const Graph& graph, const std::vector<double>& shares, const PartitionOptions& options) {
  const UndirectedView view = undirected_view(graph, has_all_reverses(graph));
  const Buffer<int64_t> work = vertex_work(graph, options);
  const Coarse whole = contract(view, work.data(), single_clusters(view.count));
  const std::vector<uint16_t> part = metis_parts(whole, shares, {});
  return partition_stats(graph, {static_cast<int>(shares.size()), std::vector<int32_t>(part.begin(), part.end())},
                         shares, options)
      .cut_edges;
}

TEST(Quality, TheCutIsAsSmallAsThatOfMetis) {
  PartitionOptions options;
  options.use_cache = false;
  for (const bool directed : {false, true}) {
    for (const int64_t nodes : {3000, 60'000}) {
      const Graph graph = communities(nodes, 10 * nodes, directed);
      for (const std::vector<double>& shares : {std::vector<double>{1, 2, 4}, std::vector<double>(8, 1)}) {
        const Partition p = partition_graph(graph, shares, options);
        const PartitionStats stats = partition_stats(graph, p, shares, options);
        EXPECT_LE(static_cast<double>(stats.cut_edges),
                  1.03 * static_cast<double>(cut_of_metis(graph, shares, options)));
        EXPECT_LE(stats.imbalance(), 0.03 + 1e-6);
      }
    }
  }
}

TEST(Quality, FennelCutsLessThanChance) {
  const Graph graph = communities(20'000, 400'000, false);
  const std::vector<double> shares = {1, 2, 4};
  PartitionOptions options;
  options.use_cache = false;
  const auto cut = [&](PartitionMethod method) {
    options.method = method;
    return static_cast<double>(
        partition_stats(graph, partition_graph(graph, shares, options), shares, options).cut_edges);
  };
  EXPECT_LT(cut(PartitionMethod::fennel), 0.8 * cut(PartitionMethod::random));
}

}  // namespace
}  // namespace nacre::test

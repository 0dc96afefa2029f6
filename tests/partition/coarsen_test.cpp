#include "nacre/partition/coarsen.h"

#include <gtest/gtest.h>

#include <map>

#include "nacre/partition/refine.h"
#include "nacre/partition/work.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

TEST(Views, KnowSymmetricGraphs) {
  for (const GraphCase& c : random_graphs(1, 20)) {
    std::map<std::pair<NodeId, NodeId>, int> edges;
    for (int64_t v = 0; v < c.graph.num_nodes(); ++v) {
      for (int64_t i = c.graph.row_ptr()[v]; i < c.graph.row_ptr()[v + 1]; ++i) {
        ++edges[{c.graph.col_idx()[i], static_cast<NodeId>(v)}];
      }
    }
    bool symmetric = true;
    for (const auto& [edge, count] : edges) {
      const auto back = edges.find({edge.second, edge.first});
      symmetric = symmetric && back != edges.end() && back->second == count;
    }
    EXPECT_EQ(has_all_reverses(c.graph), symmetric) << c.name;
    EXPECT_TRUE(has_all_reverses(make_undirected(c.graph))) << c.name;
  }
}

TEST(Coarsen, ContractionKeepsWorkAndEdges) {
  for (const GraphCase& c : random_graphs(2, 40)) {
    const UndirectedView view = undirected_view(c.graph, has_all_reverses(c.graph));
    const Buffer<int64_t> work = vertex_work(c.graph, {});
    ClusterOptions how;
    how.most_work = sum_of(work) / 4;
    const Clusters clusters = find_clusters(view, work.data(), how);
    const Coarse coarse = contract(view, work.data(), clusters);
    ASSERT_EQ(coarse.count(), clusters.count);
    EXPECT_EQ(sum_of(coarse.work), sum_of(work)) << c.name;
    // The weight between clusters is that of the edges between their vertices.
    std::map<std::pair<NodeId, NodeId>, uint64_t> wanted, found;
    std::vector<int64_t> members(clusters.count, 0);
    for (int64_t v = 0; v < view.count; ++v) {
      ++members[clusters.of[v]];
      view.each(v, [&](NodeId u, uint32_t weight) {
        if (clusters.of[u] != clusters.of[v]) wanted[{clusters.of[v], clusters.of[u]}] += weight;
      });
    }
    for (int64_t v = 0; v < coarse.count(); ++v) {
      coarse.view().each(v, [&](NodeId u, uint32_t weight) {
        EXPECT_TRUE(found.emplace(std::pair{static_cast<NodeId>(v), u}, weight).second) << "a parallel edge";
      });
      if (members[v] > 1) {
        EXPECT_LE(coarse.work[v], how.most_work) << c.name;
      }
    }
    EXPECT_EQ(found, wanted) << c.name;
  }
}

TEST(Coarsen, TheNeighboursOfAHubBecomeFewer) {
  EdgeList list;
  list.num_nodes = 10'000;
  for (NodeId v = 1; v < 10'000; ++v) {
    list.src.insert(list.src.end(), {0, v});
    list.dst.insert(list.dst.end(), {v, 0});
  }
  const Graph star = build_graph(std::move(list), "star");
  const Buffer<int64_t> work = vertex_work(star, {});
  ClusterOptions how;
  how.most_work = 16 * (sum_of(work) / 10'000);
  EXPECT_LT(find_clusters(undirected_view(star, true), work.data(), how).count, 2000);
}

TEST(Refine, NeverMakesTheCutLargerAndKeepsTheBounds) {
  for (const GraphCase& c : random_graphs(4, 200)) {
    const UndirectedView view = undirected_view(c.graph, has_all_reverses(c.graph));
    const Buffer<int64_t> work = vertex_work(c.graph, {});
    const std::vector<double> shares = {1, 2, 3};
    const Balance balance = balance_of(sum_of(work), shares, 0.1);
    Rng rng(4);
    std::vector<uint16_t> part(view.count);
    for (uint16_t& p : part) p = static_cast<uint16_t>(rng.below(3));
    PartDraft draft{view, work.data(), balance, part.data(), loads_of(part.data(), work.data(), view.count, 3)};
    rebalance(draft);
    EXPECT_EQ(draft.load, loads_of(part.data(), work.data(), view.count, 3)) << c.name;
    const int64_t before = cut_weight(view, part.data());
    const std::vector<int64_t> load = draft.load;
    refine(draft, 10);
    EXPECT_LE(cut_weight(view, part.data()), before) << c.name;
    EXPECT_EQ(draft.load, loads_of(part.data(), work.data(), view.count, 3)) << c.name;
    for (int p = 0; p < 3; ++p) {
      EXPECT_LE(draft.load[p], std::max(load[p], balance.high[p])) << c.name;
      EXPECT_GE(draft.load[p], std::min(load[p], balance.low[p])) << c.name;
    }
  }
}

TEST(Rebalance, FillsEmptyParts) {
  for (const GraphCase& c : random_graphs(5, 2000)) {
    if (c.graph.num_nodes() < 1000 || c.name == "hubs") continue;
    const UndirectedView view = undirected_view(c.graph, has_all_reverses(c.graph));
    const Buffer<int64_t> work = vertex_work(c.graph, {});
    const std::vector<double> shares = {1, 2, 3, 4};
    const Balance balance = balance_of(sum_of(work), shares, 0.03);
    std::vector<uint16_t> part(view.count, 0);
    PartDraft draft{view, work.data(), balance, part.data(), loads_of(part.data(), work.data(), view.count, 4)};
    rebalance(draft);
    for (int p = 0; p < 4; ++p) {
      EXPECT_LE(draft.load[p], balance.high[p]) << c.name << " " << p;
      EXPECT_GE(draft.load[p], balance.low[p]) << c.name << " " << p;
    }
  }
}

}  // namespace
}  // namespace nacre::test

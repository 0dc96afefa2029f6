// Changes partitions to other shares, vertex by vertex.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "nacre/base/parallel.h"
#include "nacre/partition/partition.h"
#include "nacre/partition/refine.h"
#include "nacre/partition/work.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

PartitionOptions uncached(PartitionMethod method = PartitionMethod::metis) {
  PartitionOptions options;
  options.method = method;
  options.use_cache = false;
  return options;
}

// Returns a graph whose vertices have most edges with vertices of near numbers.
Graph ring_of_neighbours(int64_t nodes, int64_t degree, uint64_t seed) {
  Rng rng(seed);
  EdgeList list;
  list.num_nodes = nodes;
  for (int64_t v = 0; v < nodes; ++v) {
    for (int64_t i = 0; i < degree; ++i) {
      const int64_t u = (v + 1 + static_cast<int64_t>(rng.below(40))) % nodes;
      list.src.insert(list.src.end(), {static_cast<NodeId>(v), static_cast<NodeId>(u)});
      list.dst.insert(list.dst.end(), {static_cast<NodeId>(u), static_cast<NodeId>(v)});
    }
  }
  return build_graph(std::move(list), "ring");
}

std::vector<uint16_t> narrow_parts(const Partition& partition) {
  return {partition.part.span().begin(), partition.part.span().end()};
}

int64_t cut_of(const Graph& graph, const Partition& partition) {
  return cut_weight(undirected_view(graph, has_all_reverses(graph)), narrow_parts(partition).data());
}

TEST(Repartition, FollowsTheSharesAndMovesFewVertices) {
  const Graph graph = ring_of_neighbours(20'000, 6, 1);
  const Buffer<int64_t> work = vertex_work(graph, {});
  const auto total = static_cast<double>(sum_of(work));
  for (const PartitionMethod method : {PartitionMethod::metis, PartitionMethod::fennel}) {
    const std::vector<double> first = {1, 2, 0, 4}, then = {1.1, 1.9, 0, 4};
    const Partition before = partition_graph(graph, first, uncached(method));
    const Partition after = repartition_graph(graph, before, then, uncached(method));
    const std::vector<int64_t> load = loads_of(narrow_parts(after).data(), work.data(), graph.num_dst(), 4);
    for (size_t p = 0; p < then.size(); ++p)
      EXPECT_NEAR(static_cast<double>(load[p]) / total, then[p] / 7, 0.004 * then[p] / 7) << p;
    int64_t moved = 0;
    for (int64_t v = 0; v < graph.num_dst(); ++v) moved += before.part[v] != after.part[v] ? 1 : 0;
    EXPECT_LT(moved, graph.num_dst() / 8);
    EXPECT_LT(cut_of(graph, after), 1.3 * static_cast<double>(cut_of(graph, before)) + 400);
  }
}

TEST(Repartition, IsTheSameOnAnyNumberOfThreads) {
  const Graph graph = ring_of_neighbours(9'000, 5, 2);
  const Partition before = partition_graph(graph, std::vector<double>{1, 1, 1}, uncached());
  std::vector<uint16_t> first;
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    const auto part = narrow_parts(repartition_graph(graph, before, std::vector<double>{3, 2, 2}, uncached()));
    if (first.empty()) first = part;
    EXPECT_EQ(part, first);
  }
  set_num_threads(2);
}

// If a part becomes empty, or the method has no notion of few moves, the graph is cut anew.
TEST(Repartition, CutsAnewIfItMust) {
  const Graph graph = ring_of_neighbours(2'000, 4, 3);
  const std::vector<double> equal = {1, 1, 1}, without = {1, 0, 1}, other = {1, 2, 3};
  const Partition before = partition_graph(graph, equal, uncached());
  EXPECT_EQ(narrow_parts(repartition_graph(graph, before, without, uncached())),
            narrow_parts(partition_graph(graph, without, uncached())));
  const PartitionOptions ranges = uncached(PartitionMethod::range);
  EXPECT_EQ(narrow_parts(repartition_graph(graph, partition_graph(graph, equal, ranges), other, ranges)),
            narrow_parts(partition_graph(graph, other, ranges)));
}

TEST(Repartition, RandomGraphsStayWhole) {
  for (const GraphCase& c : random_graphs(6, 300)) {
    const std::vector<double> equal = {1, 1}, other = {1, 3};
    const Partition before = partition_graph(c.graph, equal, uncached());
    const Partition after = repartition_graph(c.graph, before, other, uncached());
    ASSERT_EQ(after.part.size(), c.graph.num_dst()) << c.name;
    EXPECT_EQ(after.num_parts, 2) << c.name;
    for (const int32_t part : after.part.span()) EXPECT_TRUE(part == 0 || part == 1) << c.name;
  }
}

}  // namespace
}  // namespace nacre::test

#include "nacre/partition/partition.h"

#include <gtest/gtest.h>

#include <set>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/partition/stats.h"
#include "support/cache_folder.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

constexpr PartitionMethod kMethods[] = {PartitionMethod::metis, PartitionMethod::fennel, PartitionMethod::range,
                                        PartitionMethod::random};

PartitionOptions with(PartitionMethod method) {
  PartitionOptions options;
  options.method = method;
  options.use_cache = false;
  return options;
}

Graph random_graph(int64_t nodes, int64_t edges, uint64_t seed) {
  Rng rng(seed);
  EdgeList list;
  list.num_nodes = nodes;
  for (int64_t i = 0; i < edges; ++i) {
    list.src.push_back(static_cast<NodeId>(rng.below(nodes)));
    list.dst.push_back(static_cast<NodeId>(rng.below(nodes)));
  }
  return build_graph(std::move(list), "random");
}

std::string refusal(const std::vector<double>& shares, const PartitionOptions& options = with(PartitionMethod::range)) {
  try {
    partition_graph(Graph(), shares, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Partition, GivesEveryVertexAPart) {
  const std::vector<std::vector<double>> all_shares = {
      {1}, {1, 1}, {1, 2, 4}, {0, 3, 0, 1}, std::vector<double>(40, 1)};
  for (const GraphCase& c : random_graphs(3, 30)) {
    for (const PartitionMethod method : kMethods) {
      for (const std::vector<double>& shares : all_shares) {
        const Partition p = partition_graph(c.graph, shares, with(method));
        ASSERT_EQ(p.part.size(), c.graph.num_nodes()) << c.name;
        EXPECT_EQ(p.num_parts, std::ssize(shares));
        for (const int32_t part : p.part) {
          ASSERT_GE(part, 0) << c.name << " " << partition_method_name(method);
          ASSERT_LT(part, p.num_parts) << c.name;
          EXPECT_GT(shares[part], 0) << c.name << ": a part of share 0 got a vertex";
        }
      }
    }
  }
}

TEST(Partition, AnEmptyGraphHasEmptyParts) {
  for (const PartitionMethod method : kMethods) {
    const std::vector<double> shares = {1, 2};
    const Partition p = partition_graph(Graph(), shares, with(method));
    EXPECT_EQ(p.part.size(), 0);
    EXPECT_EQ(p.num_parts, 2);
    EXPECT_EQ(partition_stats(Graph(), p, shares, with(method)).imbalance(), 0);
  }
}

TEST(Partition, MorePartsThanVertices) {
  const Graph graph = random_graph(5, 20, 1);
  for (const PartitionMethod method : {PartitionMethod::metis, PartitionMethod::range, PartitionMethod::random}) {
    const Partition p = partition_graph(graph, std::vector<double>(9, 1), with(method));
    std::set<int32_t> used(p.part.begin(), p.part.end());
    EXPECT_GE(used.size(), 3U) << partition_method_name(method);
  }
}

TEST(Partition, TheWorkFollowsTheShares) {
  const Graph graph = random_graph(4000, 30'000, 2);
  const std::vector<double> shares = {1, 2, 4, 0.5};
  for (const PartitionMethod method : kMethods) {
    for (const auto& [row, edge] : {std::pair{10.0, 1.0}, std::pair{0.0, 1.0}, std::pair{1.0, 0.0}}) {
      PartitionOptions options = with(method);
      options.row_work = row;
      options.edge_work = edge;
      const Partition p = partition_graph(graph, shares, options);
      EXPECT_LE(partition_stats(graph, p, shares, options).imbalance(), 0.03 + 1e-6)
          << partition_method_name(method) << " " << row << " " << edge;
    }
  }
}

TEST(Partition, IsTheSameOnAnyNumberOfThreads) {
  const Graph graph = random_graph(60'000, 600'000, 3);
  const std::vector<double> shares = {1, 2, 4};
  const int threads = num_threads();
  for (const PartitionMethod method : kMethods) {
    set_num_threads(1);
    const Partition one = partition_graph(graph, shares, with(method));
    set_num_threads(4);
    const Partition four = partition_graph(graph, shares, with(method));
    set_num_threads(threads);
    EXPECT_TRUE(std::equal(one.part.begin(), one.part.end(), four.part.begin())) << partition_method_name(method);
  }
}

TEST(Partition, SeedsGiveOtherPartitions) {
  const Graph graph = random_graph(2000, 9000, 4);
  for (const PartitionMethod method : {PartitionMethod::metis, PartitionMethod::random}) {
    PartitionOptions options = with(method);
    const Partition first = partition_graph(graph, std::vector<double>{1, 1}, options);
    options.seed = 7;
    const Partition second = partition_graph(graph, std::vector<double>{1, 1}, options);
    EXPECT_FALSE(std::equal(first.part.begin(), first.part.end(), second.part.begin()));
  }
}

TEST(Partition, SeparateComponentsAreNotCut) {
  EdgeList list;
  list.num_nodes = 400;
  for (NodeId v = 0; v < 400; ++v) {  // four rings; the ring of v is v % 4
    list.src.push_back(v);
    list.dst.push_back((v + 4) % 400);
  }
  const Graph graph = build_graph(std::move(list), "rings");
  const std::vector<double> shares = {1, 1};
  const Partition p = partition_graph(graph, shares, with(PartitionMethod::metis));
  EXPECT_LE(partition_stats(graph, p, shares, with(PartitionMethod::metis)).cut_edges, 4);
}

TEST(Partition, RangesAreConsecutive) {
  const Graph graph = random_graph(1000, 5000, 5);
  const Partition p = partition_graph(graph, std::vector<double>{3, 0, 1}, with(PartitionMethod::range));
  EXPECT_TRUE(std::is_sorted(p.part.begin(), p.part.end()));
}

TEST(Partition, RefusesUnusableShares) {
  EXPECT_NE(refusal({}).find("no shares"), std::string::npos);
  EXPECT_NE(refusal({1, -2}).find("-2 is not a share"), std::string::npos);
  EXPECT_NE(refusal({0, 0}).find("all shares are 0"), std::string::npos);
  EXPECT_NE(refusal(std::vector<double>(1025, 1)).find("at most 1,024"), std::string::npos);
  EXPECT_NE(refusal({1, NAN}).find("is not a share"), std::string::npos);
  PartitionOptions options = with(PartitionMethod::range);
  options.row_work = options.edge_work = 0;
  EXPECT_NE(refusal({1, 1}, options).find("--row-work"), std::string::npos);
  EXPECT_THROW(parse_partition_method("mettis"), UserError);
  EXPECT_EQ(parse_partition_method("METIS"), PartitionMethod::metis);
}

TEST(Partition, IsKeptInTheCache) {
  const CacheFolder cache;
  const Graph graph = random_graph(500, 3000, 6);
  const std::vector<double> shares = {1, 2};
  PartitionOptions options = with(PartitionMethod::metis);
  options.use_cache = true;
  const Partition made = partition_graph(graph, shares, options);
  const Partition kept = partition_graph(graph, std::vector<double>{2, 4}, options);
  EXPECT_FALSE(made.cached);
  EXPECT_TRUE(kept.cached) << "2:4 are the shares 1:2";
  EXPECT_TRUE(std::equal(made.part.begin(), made.part.end(), kept.part.begin()));
  for (const auto& change : std::vector<void (*)(PartitionOptions&)>{
           [](PartitionOptions& o) { o.seed = 1; }, [](PartitionOptions& o) { o.row_work = 1; },
           [](PartitionOptions& o) { o.imbalance = 0.1; },
           [](PartitionOptions& o) { o.method = PartitionMethod::fennel; }}) {
    PartitionOptions other = options;
    change(other);
    EXPECT_FALSE(partition_graph(graph, shares, other).cached);
  }
  EXPECT_FALSE(partition_graph(random_graph(500, 3000, 7), shares, options).cached);
}

}  // namespace
}  // namespace nacre::test

#include "nacre/sample/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "checks.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

SampleOptions fanouts(std::vector<int> fanout) {
  SampleOptions options;
  options.fanout = std::move(fanout);
  options.seed = 5;
  return options;
}

// Every third vertex.
std::vector<NodeId> some_vertices(const Graph& graph) {
  std::vector<NodeId> ids;
  for (int64_t v = 0; v < graph.num_nodes(); v += 3) ids.push_back(static_cast<NodeId>(v));
  std::reverse(ids.begin(), ids.end());
  return ids;
}

TEST(NeighborSampler, BlocksOfAwkwardGraphsAreWhole) {
  for (const int64_t nodes : {12, 90}) {
    for (const auto& [name, graph] : random_graphs(7, nodes)) {
      SCOPED_TRACE(name);
      for (const bool replace : {false, true}) {
        for (const bool weighted : {false, true}) {
          if (weighted && !graph.weighted()) continue;
          SampleOptions options = fanouts({2, 3, -1});
          options.replace = replace;
          options.weighted = weighted;
          const Sampler sampler(graph, options);
          const auto seeds = some_vertices(graph);
          const Sample sample = sampler.sample(seeds, {1, 2});
          check_sample(graph, sample, seeds);
          if (HasFatalFailure()) return;
          for (size_t l = 0; l < 3; ++l) {
            const int fanout = options.fanout[2 - l];
            ASSERT_EQ(sample.scale[l].empty(), fanout < 0 || sample.blocks[l].num_edges() == 0);
            for (int64_t v = 0; v < sample.blocks[l].num_dst(); ++v) {
              const int64_t degree = graph.in_degree(sample.vertices[v]);
              const int64_t expected = fanout < 0 ? degree
                                       : replace  ? (degree > 0 ? fanout : 0)
                                                  : std::min<int64_t>(degree, fanout);
              ASSERT_EQ(sample.blocks[l].in_degree(v), expected);
              if (replace) continue;
              const int64_t begin = sample.blocks[l].row_ptr()[v];
              const std::set<int64_t> distinct(sample.edges[l].begin() + begin,
                                               sample.edges[l].begin() + begin + expected);
              ASSERT_EQ(static_cast<int64_t>(distinct.size()), expected);
            }
          }
        }
      }
    }
  }
}

TEST(NeighborSampler, AllNeighboursAreTheRowsOfTheGraph) {
  for (const auto& [name, graph] : random_graphs(8, 40)) {
    SCOPED_TRACE(name);
    const auto seeds = some_vertices(graph);
    const Sample sample = Sampler(graph, fanouts({-1, -1})).sample(seeds, {});
    check_sample(graph, sample, seeds);
    const Sample inference = full_neighbours(graph, seeds);
    check_sample(graph, inference, seeds);
    ASSERT_EQ(inference.blocks.size(), 1u);
    EXPECT_EQ(inference.blocks[0].fingerprint(), sample.blocks[1].fingerprint());
    for (size_t l = 0; l < 2; ++l) {
      EXPECT_TRUE(sample.scale[l].empty());
      for (int64_t v = 0; v < sample.blocks[l].num_dst(); ++v) {
        const int64_t row = graph.row_ptr()[sample.vertices[v]];
        ASSERT_EQ(sample.blocks[l].in_degree(v), graph.in_degree(sample.vertices[v]));
        for (int64_t k = 0; k < sample.blocks[l].in_degree(v); ++k) {
          ASSERT_EQ(sample.edges[l][sample.blocks[l].row_ptr()[v] + k], row + k);
        }
      }
    }
  }
}

TEST(BatchOrder, EveryIdOnceAndTheSameOrderForTheSameEpoch) {
  std::vector<NodeId> ids(103);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<NodeId>(3 * i + 1);
  BatchOrder order(ids, 10, 9, true);
  ASSERT_EQ(order.num_batches(), 11);
  const auto epoch = [&](BatchOrder& from, uint64_t number) {
    from.begin_epoch(number);
    std::vector<NodeId> all;
    for (int64_t b = 0; b < from.num_batches(); ++b) {
      EXPECT_EQ(from.batch(b).size(), b == 10 ? 3u : 10u);
      all.insert(all.end(), from.batch(b).begin(), from.batch(b).end());
    }
    return all;
  };
  const auto first = epoch(order, 1), second = epoch(order, 2);
  EXPECT_NE(first, second);
  EXPECT_NE(first, ids);
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), ids.begin(), ids.end()));
  BatchOrder again(ids, 10, 9, true);
  EXPECT_EQ(epoch(again, 1), first);
  BatchOrder plain(ids, 10, 9, false);
  EXPECT_EQ(epoch(plain, 1), ids);
  EXPECT_EQ(BatchOrder(Array<NodeId>(), 4, 1, true).num_batches(), 0);
  EXPECT_THROW(BatchOrder(ids, 0, 1, true), UserError);
}

}  // namespace
}  // namespace nacre::test

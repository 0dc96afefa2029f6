#include "nacre/sample/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "checks.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/sample/draw.h"
#include "nacre/sample/hop_sampler.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

SampleOptions fanouts(std::vector<int> fanout) {
  SampleOptions options;
  options.fanout = std::move(fanout);
  options.seed = 5;
  return options;
}

// Returns every third vertex.
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

TEST(NeighborSampler, TypesHaveFanOutsOfTheirOwn) {
  for (const auto& [name, graph] : random_graphs(9, 60)) {
    if (!graph.typed()) continue;
    SCOPED_TRACE(name);
    for (const bool replace : {false, true}) {
      SampleOptions options;
      options.type_fanout = {{1, 0, -1, 2}, {-1, -1, -1, -1}};
      options.replace = replace;
      const auto seeds = some_vertices(graph);
      const Sample sample = Sampler(graph, options).sample(seeds, {4, 4});
      check_sample(graph, sample, seeds);
      EXPECT_TRUE(sample.scale[0].empty());
      const Graph& block = sample.blocks[1];
      for (int64_t v = 0; v < block.num_dst(); ++v) {
        int64_t degree[4] = {}, picked[4] = {};
        const int64_t row = graph.row_ptr()[seeds[static_cast<size_t>(v)]];
        for (int64_t k = 0; k < graph.in_degree(sample.vertices[v]); ++k) ++degree[graph.edge_type()[row + k]];
        for (int64_t e = block.row_ptr()[v]; e < block.row_ptr()[v + 1]; ++e) ++picked[block.edge_type()[e]];
        EXPECT_EQ(picked[0], std::min<int64_t>(degree[0], 1));
        EXPECT_EQ(picked[1], 0);
        EXPECT_EQ(picked[2], degree[2]);
        EXPECT_EQ(picked[3], replace && degree[3] > 0 ? 2 : std::min<int64_t>(degree[3], 2));
      }
    }
  }
}

SampleOptions options_of(const std::string& kind) {
  SampleOptions options;
  options.sampler = kind;
  options.seed = 17;
  options.layers = 3;
  if (sampler_info(kind).draws_subgraph) {
    options.budget = 6;
    options.norm_samples = 20;
  } else {
    options.fanout = kind == "layer" ? std::vector<int>{4, 9, 30} : std::vector<int>{3, 40, 2};
  }
  return options;
}

const char* const kKinds[] = {"neighbor", "layer", "saint-vertex", "saint-edge", "saint-walk"};

std::vector<NodeId> seeds_for(const std::string& kind, const Graph& graph) {
  return sampler_info(kind).draws_subgraph ? std::vector<NodeId>() : some_vertices(graph);
}

TEST(EverySampler, MakesWholeBlocksOfAwkwardGraphs) {
  for (const std::string kind : kKinds) {
    for (const auto& [name, graph] : random_graphs(31, 30)) {
      SCOPED_TRACE(name + " " + kind);
      const Sampler sampler(graph, options_of(kind));
      EXPECT_EQ(sampler.layers(), 3);
      const auto seeds = seeds_for(kind, graph);
      const Sample sample = sampler.sample(seeds, {1, 1});
      if (sampler_info(kind).draws_subgraph) {
        check_sample(graph, sample, sample.vertices.span());
        EXPECT_EQ(sample.loss_scale.size(), sample.num_seeds);
        EXPECT_TRUE(std::is_sorted(sample.vertices.begin(), sample.vertices.end()));
      } else {
        check_sample(graph, sample, seeds);
        EXPECT_TRUE(sample.loss_scale.empty());
        check_sample(graph, sampler.sample({}, {1, 1}), {});
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(EverySampler, TheEmptyGraphHasEmptySamples) {
  for (const std::string kind : kKinds) {
    const Sample sample = Sampler(Graph(), options_of(kind)).sample({}, {});
    EXPECT_EQ(sample.blocks.size(), 3u);
    EXPECT_EQ(sample.vertices.size(), 0);
    EXPECT_EQ(sample.num_edges(), 0);
  }
}

TEST(SaintSampler, TheSubgraphHasAllEdgesBetweenItsVertices) {
  for (const auto& [name, graph] : random_graphs(32, 30)) {
    SCOPED_TRACE(name);
    const Sample sample = Sampler(graph, options_of("saint-walk")).sample({}, {1, 1});
    const std::set<NodeId> inside(sample.vertices.begin(), sample.vertices.end());
    int64_t edges = 0;
    for (const NodeId v : inside) {
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
        edges += static_cast<int64_t>(inside.count(graph.col_idx()[e]));
      }
    }
    EXPECT_EQ(sample.blocks[0].num_edges(), edges);
    EXPECT_EQ(sample.blocks[2].fingerprint(), sample.blocks[0].fingerprint());
  }
}

TEST(LayerSampler, DrawsSoManyVerticesAndKeepsAllTheirEdges) {
  const Graph graph = random_graphs(33, 60)[0].graph;
  const auto seeds = some_vertices(graph);
  SampleOptions options = options_of("layer");
  options.layers = 0;
  options.fanout = {7, -1};
  const Sample sample = Sampler(graph, options).sample(seeds, {2, 2});
  check_sample(graph, sample, seeds);
  const Array<NodeId>& sources = sample.blocks[1].col_idx();
  const std::set<NodeId> drawn(sources.begin(), sources.end());
  EXPECT_EQ(drawn.size(), 7u);
  int64_t edges = 0;
  for (const NodeId v : seeds) {
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
      edges += std::any_of(drawn.begin(), drawn.end(),
                           [&](NodeId local) { return sample.vertices[local] == graph.col_idx()[e]; });
    }
  }
  EXPECT_EQ(sample.blocks[1].num_edges(), edges);
  EXPECT_TRUE(sample.scale[0].empty());
  EXPECT_EQ(
      sample.blocks[0].num_edges(),
      full_neighbours(graph, {sample.vertices.data(), static_cast<size_t>(sample.blocks[1].num_src())}).num_edges());
}

// The scheduler may leave reindexing to another thread and go on sampling. Samples are dropped on
// any thread.
TEST(EverySampler, ReindexingMayRunBesideLaterHops) {
  const Graph graph = random_graphs(37, 400)[3].graph;
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    const Sampler sampler(graph, options_of(kind));
    const auto seeds = seeds_for(kind, graph);
    const auto batch_sampler = sampler.make_batch_sampler();
    std::thread last;
    for (uint64_t batch = 0; batch < 10; ++batch) {
      batch_sampler->begin(seeds, {3, batch});
      std::vector<std::thread> reindexing;
      for (int hop = 0; hop < batch_sampler->hops(); ++hop) {
        batch_sampler->pick(hop);
        batch_sampler->insert(hop);
        reindexing.emplace_back([&, hop] { batch_sampler->reindex(hop); });
      }
      for (std::thread& thread : reindexing) thread.join();
      auto sample = std::make_unique<Sample>(batch_sampler->finish());
      expect_equal(*sample, sampler.sample(seeds, {3, batch}));
      if (last.joinable()) last.join();
      last = std::thread([dropped = std::move(sample)]() mutable { dropped.reset(); });
    }
    last.join();
  }
}

// Tests the order of the scheduler: look-ups after every insert, reindexing as late as possible,
// and one object for many batches.
TEST(EverySampler, SubtasksInTheSchedulersOrderGiveTheSameSample) {
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    for (const size_t which : {0, 3}) {
      const Graph graph = random_graphs(34, 80)[which].graph;
      const Sampler sampler(graph, options_of(kind));
      auto seeds = seeds_for(kind, graph);
      const auto batch_sampler = sampler.make_batch_sampler();
      for (uint64_t batch = 0; batch < 6; ++batch) {
        batch_sampler->begin(seeds, {2, batch});
        for (int hop = 0; hop < batch_sampler->hops(); ++hop) {
          batch_sampler->pick(hop);
          batch_sampler->insert(hop);
        }
        const std::vector<NodeId> known(batch_sampler->vertices().begin(), batch_sampler->vertices().end());
        for (int hop = batch_sampler->hops(); hop-- > 0;) batch_sampler->reindex(hop);
        const Sample sample = batch_sampler->finish();
        EXPECT_TRUE(std::equal(known.begin(), known.end(), sample.vertices.begin(), sample.vertices.end()));
        expect_equal(sample, sampler.sample(seeds, {2, batch}));
        if (!seeds.empty()) seeds.pop_back();
      }
    }
  }
}

TEST(EverySampler, TheSameBitsOnAnyNumberOfThreads) {
  const int before = num_threads();
  const Graph graph = random_graphs(35, 300)[3].graph;
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    const auto seeds = seeds_for(kind, graph);
    std::vector<Sample> alone(24), together(24);
    set_num_threads(1);
    const Sampler first(graph, options_of(kind));
    for (uint64_t b = 0; b < 24; ++b) alone[b] = first.sample(seeds, {1, b});
    set_num_threads(4);
    const Sampler second(graph, options_of(kind));
    parallel_tasks(24, [&](int64_t b) {
      together[static_cast<size_t>(b)] = second.sample(seeds, {1, static_cast<uint64_t>(b)});
    });
    for (size_t b = 0; b < 24; ++b) expect_equal(alone[b], together[b]);
    EXPECT_FALSE(std::equal(alone[0].edges[2].begin(), alone[0].edges[2].end(), alone[1].edges[2].begin(),
                            alone[1].edges[2].end()));
  }
  set_num_threads(before);
}

TEST(EverySampler, HashTablesNumberAsDirectOnesDo) {
  const Graph graph = random_graphs(36, 3000)[3].graph;
  const auto seeds = some_vertices(graph);
  for (const std::string kind : {"neighbor", "layer"}) {
    SampleOptions options = options_of(kind);
    options.fanout = {50, 70, 400};
    const auto sampler =
        kind == "layer" ? make_layer_sampler(graph, options, 3, 0) : make_neighbor_sampler(graph, options, 3, 0);
    for (const uint64_t batch : {0, 1}) {
      sampler->begin(seeds, {1, batch});
      for (int hop = 0; hop < 3; ++hop) {
        sampler->pick(hop);
        sampler->insert(hop);
        sampler->reindex(hop);
      }
      expect_equal(sampler->finish(), Sampler(graph, options).sample(seeds, {1, batch}));
    }
  }
}

// Fan-outs on both sides of the border between the two ways to draw distinct edges give the same
// draws, so a longer row of seeds or another batch size never changes what a vertex draws.
TEST(NeighborSampler, DrawsAreThoseOfTheHeader) {
  const NodeId seed = 0;
  for (const auto& [degree, fanout] : std::vector<std::pair<int, int>>{
           {500, 1}, {500, 5}, {500, 15}, {500, 32}, {500, 33}, {500, 499}, {6, 4}, {6, 5}, {11, 9}, {33, 32}}) {
    const Graph graph = star(degree);
    const Sample sample = Sampler(graph, fanouts({fanout})).sample({&seed, 1}, {7, 8});
    const draw::Stream stream{draw::batch_key(5, 7, 8), draw::place(0, 0), 0};
    std::set<uint32_t> expected;
    for (int i = 0; i < fanout; ++i) {
      const uint32_t top = degree - fanout + i;
      const uint32_t t = draw::below(stream.four(i / 4)[i % 4], top + 1);
      expected.insert(expected.count(t) ? top : t);
    }
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sample.edges[0].begin(), sample.edges[0].end()));
    for (const float scale : sample.scale[0]) EXPECT_EQ(scale, static_cast<float>(degree) / static_cast<float>(fanout));
  }
}

TEST(NeighborSampler, HopsEpochsBatchesAndSeedsDrawAnew) {
  const Graph graph = star(300);
  const NodeId seed = 0;
  const auto picked = [&](uint64_t number, const SampleKey& key, size_t hop) {
    SampleOptions options = fanouts({6, 6});
    options.seed = number;
    const Sample sample = Sampler(graph, options).sample({&seed, 1}, key);
    return std::vector<int64_t>(sample.edges[1 - hop].begin(), sample.edges[1 - hop].begin() + 6);
  };
  const std::set<std::vector<int64_t>> different = {picked(1, {1, 1}, 0), picked(1, {1, 1}, 1), picked(2, {1, 1}, 0),
                                                    picked(1, {2, 1}, 0), picked(1, {1, 2}, 0)};
  EXPECT_EQ(different.size(), 5u);
}

TEST(Draw, LogarithmAndExponentialAreAccurate) {
  for (int i = 1; i < 20000; ++i) {
    const double x = std::exp(-0.002 * i), y = 1 - 0x1p-53 * i;
    EXPECT_NEAR(draw::natural_log(x) / std::log(x), 1, 2e-15);
    EXPECT_NEAR(draw::natural_log(y) / std::log(y), 1, 2e-15);
    EXPECT_NEAR(draw::one_minus_exp(0.0025 * i) / -std::expm1(-0.0025 * i), 1, 2e-15);
    EXPECT_NEAR(draw::one_minus_exp(1e-9 * i) / -std::expm1(-1e-9 * i), 1, 2e-15);
  }
  EXPECT_EQ(draw::one_minus_exp(0), 0);
  EXPECT_EQ(draw::one_minus_exp(INFINITY), 1);
  EXPECT_GT(draw::open_unit(0, 0), 0);
  EXPECT_LT(draw::open_unit(~0u, ~0u), 1);
}

template <class Table>
void check_table() {
  Table table(5000, INT64_C(0xFFFFFFFF) - 12000);
  for (int round = 0; round < 5; ++round) {
    table.reset(5000);
    EXPECT_EQ(table.size(), 0u);
    table.reserve(3000);
    for (NodeId i = 0; i < 3000; ++i) {
      const NodeId vertex = i * 1009 % 5000;
      ASSERT_GE(table.find(vertex), table.size());
      ASSERT_EQ(table.insert(vertex), i);
      ASSERT_EQ(table.insert(vertex), i);
      if (i == 1500) table.reserve(40000);
    }
    for (NodeId i = 0; i < 3000; ++i) ASSERT_EQ(table.find(i * 1009 % 5000), i);
  }
}

TEST(VertexTable, NumbersInOrderAndForgetsEvenWhereBitsRunOut) {
  check_table<DirectTable>();
  check_table<HashTable>();
}

TEST(Options, MistakesAreNamed) {
  const Graph plain = random_graphs(1, 12)[0].graph, typed = random_graphs(1, 12)[2].graph;
  const auto refuse = [](const Graph& graph, const SampleOptions& options, const std::string& flag) {
    try {
      const Sampler sampler(graph, options);
      ADD_FAILURE() << flag << " was accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, flag.size()), flag) << error.what();
    }
  };
  refuse(plain, fanouts({}), "--fanout");
  refuse(plain, fanouts({3, 0}), "--fanout");
  refuse(plain, fanouts({-2}), "--fanout");
  SampleOptions options = fanouts({3, 3});
  options.layers = 3;
  refuse(plain, options, "--fanout");
  options = fanouts({3});
  options.weighted = true;
  refuse(plain, options, "--sample-weighted");
  refuse(star(2, {1, -1}), options, "--sample-weighted");
  refuse(star(2, {1, NAN}), options, "--sample-weighted");
  options = fanouts({3});
  options.budget = 3;
  refuse(plain, options, "--budget");
  options = {};
  options.type_fanout = {{1, 1, 1, 1}};
  refuse(plain, options, "--fanout");
  options.type_fanout = {{1, 1, 1}};
  refuse(typed, options, "--fanout");
  options.type_fanout = {{1, 1, 1, -2}};
  refuse(typed, options, "--fanout");
  options.type_fanout = {{1, 1, 1, 1}};
  options.fanout = {2};
  refuse(typed, options, "--fanout");
  for (const std::string kind : {"saint-vertex", "saint-edge", "saint-walk"}) {
    const SampleOptions good = options_of(kind);
    const auto wrong = [&](auto change, const std::string& flag) {
      SampleOptions bad = good;
      change(bad);
      refuse(plain, bad, flag);
    };
    wrong([](SampleOptions& o) { o.layers = 0; }, "--layers");
    wrong([](SampleOptions& o) { o.budget = 0; }, "--budget");
    wrong([](SampleOptions& o) { o.fanout = {2}; }, "--fanout");
    wrong([](SampleOptions& o) { o.replace = true; }, "--replace");
    wrong([](SampleOptions& o) { o.walk_length = 0; }, "--walk-length");
    wrong([](SampleOptions& o) { o.norm_samples = 0; }, "--norm-samples");
  }
  const Sampler sampler(plain, fanouts({2}));
  const std::vector<NodeId> twice = {1, 2, 1}, outside = {12};
  EXPECT_THROW(sampler.sample(twice, {}), InternalError);
  EXPECT_THROW(sampler.sample(outside, {}), InternalError);
}

TEST(BatchOrder, RanksTakeEveryBatchOnce) {
  std::vector<NodeId> ids(73);
  std::iota(ids.begin(), ids.end(), NodeId{0});
  BatchOrder whole(ids, 5, 9, true);
  whole.begin_epoch(3);
  const std::vector<int64_t> counts = {2, 0, 1, 3};
  std::vector<int> taken(static_cast<size_t>(whole.num_batches()), 0);
  int64_t begin = 0;
  for (const int64_t count : counts) {
    BatchOrder own(ids, 5, 9, true, {6, begin, count});
    own.begin_epoch(3);
    EXPECT_EQ(own.all_batches(), whole.num_batches());
    for (int64_t i = 0; i < own.num_batches(); ++i) {
      const int64_t number = own.number(i);
      ++taken[static_cast<size_t>(number)];
      EXPECT_EQ(own.before(number), i);
      EXPECT_TRUE(std::ranges::equal(own.batch(i), whole.batch(number)));
    }
    begin += count;
  }
  EXPECT_EQ(taken, std::vector<int>(taken.size(), 1));
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

// Compares placements with all other placements of small instances, and tests what every method
// promises.
#include "nacre/place/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/place/methods.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre {
namespace {

std::vector<NodeId> rows_of(const FeaturePlacement& placement, int device) {
  const Array<NodeId>& rows = placement.device_rows[static_cast<size_t>(device)];
  return {rows.begin(), rows.end()};
}

// Tests the example of section 3.2 of the paper, with devices counted from 0.
TEST(AlgorithmOne, PlacesTheExampleOfThePaper) {
  const std::vector<float> reads{4.0f / 6, 1, 1, 1, 5.0f / 6, 5.0f / 6};
  PlacementRequest request;
  request.num_vertices = 6;
  request.device_rows = {2, 2};
  request.alpha = 0.3;
  request.reads = reads;
  const FeaturePlacement placement = place_features(request);
  EXPECT_EQ(rows_of(placement, 0), (std::vector<NodeId>{1, 3}));
  EXPECT_EQ(rows_of(placement, 1), (std::vector<NodeId>{4, 2}));
  for (const int reader : {0, 1}) {
    const RowTables tables = row_tables(placement, reader);
    EXPECT_EQ(std::vector<int>(tables.dev_num.begin(), tables.dev_num.end()), (std::vector<int>{-1, 0, 1, 0, 1, -1}));
    EXPECT_EQ(std::vector<NodeId>(tables.buf_pos.begin(), tables.buf_pos.end()),
              (std::vector<NodeId>{0, 0, 1, 1, 0, 5}));
  }
}

TEST(AlgorithmOne, KeepsCopiesOfRowsThatAreReadOften) {
  const std::vector<float> reads{100, 90, 2, 1, 1, 1};
  PlacementRequest request;
  request.num_vertices = 6;
  request.device_rows = {3, 3};
  request.reads = reads;
  request.alpha = 0.2;
  FeaturePlacement placement = place_features(request);
  // row 3 replaces row 2, because 1 > 0.2 · 2
  EXPECT_EQ(rows_of(placement, 0), (std::vector<NodeId>{0, 1, 3}));
  // row 1 keeps its copy, because 1 < 0.2 · 90
  EXPECT_EQ(rows_of(placement, 1), (std::vector<NodeId>{0, 1, 2}));
  request.alpha = 0;
  placement = place_features(request);
  EXPECT_EQ(placement.rows_on_devices(), 6);
  EXPECT_EQ(rows_of(placement, 0), (std::vector<NodeId>{5, 1, 3}));
  EXPECT_EQ(rows_of(placement, 1), (std::vector<NodeId>{0, 4, 2}));
}

// Goes through all sets of rows of all devices of one group, which are bit masks, and finds the
// least sum and the least maximum of the costs.
struct Optimum {
  double sum = 1e300;
  double largest = 1e300;
};

Optimum brute_force(std::span<const float> reads, std::span<const int64_t> capacity, const RowCosts& costs) {
  const size_t vertices = reads.size(), devices = capacity.size();
  std::vector<std::vector<uint32_t>> choices(devices);
  for (size_t d = 0; d < devices; ++d) {
    for (uint32_t mask = 0; mask < 1u << vertices; ++mask) {
      if (__builtin_popcount(mask) == std::min<int64_t>(capacity[d], static_cast<int64_t>(vertices)))
        choices[d].push_back(mask);
    }
  }
  std::vector<double> weight(size_t{1} << vertices, 0);  // sum of the reads of each set of rows
  for (size_t mask = 1; mask < weight.size(); ++mask) {
    weight[mask] = weight[mask & (mask - 1)] + reads[static_cast<size_t>(__builtin_ctzll(mask))];
  }
  Optimum best;
  std::vector<size_t> at(devices, 0);
  for (bool more = true; more;) {
    uint32_t any = 0;
    for (size_t d = 0; d < devices; ++d) any |= choices[d][at[d]];
    const double missing = weight.back() - weight[any];
    double sum = 0, largest = 0;
    for (size_t d = 0; d < devices; ++d) {
      const uint32_t own = choices[d][at[d]];
      const double cost = costs.host * missing + costs.peer * weight[any & ~own] + costs.own * weight[own];
      sum += cost;
      largest = std::max(largest, cost);
    }
    best.sum = std::min(best.sum, sum);
    best.largest = std::min(best.largest, largest);
    more = false;
    for (size_t d = 0; d < devices && !more; ++d) {
      at[d] = (at[d] + 1) % choices[d].size();
      more = at[d] != 0;
    }
  }
  return best;
}

std::vector<float> random_reads(test::Rng& rng, size_t vertices) {
  const double power = rng.uniform(0, 6);
  std::vector<float> reads;
  for (size_t v = 0; v < vertices; ++v) reads.push_back(static_cast<float>(std::pow(rng.uniform(), power)));
  if (rng.below(4) == 0) reads[0] = 0;
  return reads;
}

// Returns the costs of a placement in which every device has the same share of the batches,
// multiplied by the number of devices.
std::vector<double> costs_of(const FeaturePlacement& placement, std::span<const float> reads, const RowCosts& costs) {
  std::vector<double> result;
  for (const TierReads& each : expected_reads(placement, reads)) {
    result.push_back(each.seconds(costs) * placement.devices());
  }
  return result;
}

// No placement has a smaller sum of costs than Algorithm 1, whatever the reads, the capacities and
// the costs are. No placement has a largest cost that is smaller by more than one row: rows are
// whole, so devices cannot always have equal costs.
TEST(AlgorithmOne, IsNotBeatenByAnyPlacement) {
  test::Rng rng(1);
  for (int round = 0; round < 120; ++round) {
    const size_t devices = 1 + static_cast<size_t>(rng.below(3));
    const size_t vertices = devices == 3 ? 6 : 3 + static_cast<size_t>(rng.below(5));
    const std::vector<float> reads = random_reads(rng, vertices);
    PlacementRequest request;
    request.num_vertices = static_cast<int64_t>(vertices);
    request.device_rows.assign(devices, 1 + rng.below(static_cast<int64_t>(vertices) - 1));
    request.reads = reads;
    request.costs.own = rng.below(2) == 0 ? 0 : 0.05;
    request.costs.peer = request.costs.own + rng.uniform(0, 1.1);
    const FeaturePlacement placement = place_features(request);
    const std::vector<double> found = costs_of(placement, reads, request.costs);
    RowCosts seen = request.costs;
    seen.peer = std::min(seen.peer, seen.host);
    const Optimum best = brute_force(reads, request.device_rows, seen);
    const double sum = std::accumulate(found.begin(), found.end(), 0.0);
    const double largest = *std::max_element(found.begin(), found.end());
    EXPECT_LE(sum, best.sum + 1e-6) << "round " << round;
    EXPECT_LE(largest, best.largest + seen.peer * *std::max_element(reads.begin(), reads.end()) + 1e-6)
        << "round " << round;
  }
}

// If the rows form groups of equally read rows with one row for each device, all devices can have
// equal costs. If they do, no placement has a smaller largest cost.
TEST(AlgorithmOne, IsNotBeatenInTheLargestCostWhereDevicesCanBeBalanced) {
  test::Rng rng(2);
  int balanced = 0;
  for (int round = 0; round < 80; ++round) {
    std::vector<float> reads;
    for (int i = 0; i < 4; ++i) reads.insert(reads.end(), 2, static_cast<float>(std::pow(rng.uniform(), 3)));
    PlacementRequest request;
    request.num_vertices = 8;
    request.device_rows.assign(2, 1 + rng.below(6));
    request.reads = reads;
    request.costs.peer = rng.uniform(0, 1);
    const std::vector<double> found = costs_of(place_features(request), reads, request.costs);
    const Optimum best = brute_force(reads, request.device_rows, request.costs);
    if (found[0] > found[1] + 1e-9 || found[1] > found[0] + 1e-9) continue;
    ++balanced;
    EXPECT_NEAR(found[0], best.largest, 1e-6) << "round " << round;
  }
  EXPECT_GE(balanced, 20);
}

TEST(AlgorithmOne, IsNotBeatenWithUnequalCapacities) {
  test::Rng rng(3);
  for (int round = 0; round < 60; ++round) {
    const std::vector<float> reads = random_reads(rng, 7);
    PlacementRequest request;
    request.num_vertices = 7;
    request.device_rows = {rng.below(5), rng.below(7)};
    request.reads = reads;
    request.costs.peer = rng.uniform(0, 1);
    const std::vector<double> found = costs_of(place_features(request), reads, request.costs);
    const Optimum best = brute_force(reads, request.device_rows, request.costs);
    EXPECT_LE(found[0] + found[1], best.sum + 1e-6) << "round " << round;
  }
}

struct Topology {
  std::string name;
  std::vector<int> group;
};

class Topologies : public ::testing::TestWithParam<Topology> {};

// Devices of different groups do not read each other's rows, so each group is placed as if it were
// alone.
TEST_P(Topologies, EveryGroupIsPlacedByItself) {
  test::Rng rng(4);
  const std::vector<int>& group = GetParam().group;
  std::vector<float> reads;
  for (int v = 0; v < 500; ++v) reads.push_back(static_cast<float>(std::pow(rng.uniform(), 4)));
  PlacementRequest request;
  request.num_vertices = 500;
  request.device_rows.assign(group.size(), 60);
  request.group = group;
  request.reads = reads;
  const FeaturePlacement placement = place_features(request);
  for (const std::vector<int>& devices : devices_of_groups(group)) {
    PlacementRequest alone = request;
    alone.group.clear();
    alone.device_rows.assign(devices.size(), 60);
    const FeaturePlacement part = place_features(alone);
    for (size_t i = 0; i < devices.size(); ++i) {
      EXPECT_EQ(rows_of(placement, devices[i]), rows_of(part, static_cast<int>(i)));
    }
  }
  // Readers find their own rows in their own memory, and read nothing from other groups.
  for (int reader = 0; reader < placement.devices(); ++reader) {
    const RowTables tables = row_tables(placement, reader);
    const std::vector<NodeId> own = rows_of(placement, reader);
    for (const NodeId v : own) EXPECT_EQ(tables.dev_num[v], reader);
    for (int64_t v = 0; v < request.num_vertices; ++v) {
      const RowHolder by = tables.dev_num[v];
      if (by < 0) continue;
      EXPECT_EQ(group[static_cast<size_t>(by)], group[static_cast<size_t>(reader)]);
      EXPECT_EQ(rows_of(placement, by)[tables.buf_pos[v]], static_cast<NodeId>(v));
    }
  }
  // The costs of two devices differ by at most the rows of one round.
  const std::vector<double> found = costs_of(placement, reads, request.costs);
  const auto [least, most] = std::minmax_element(found.begin(), found.end());
  EXPECT_LE(*most - *least, 2 * request.costs.peer);
}

INSTANTIATE_TEST_SUITE_P(Groups, Topologies,
                         ::testing::Values(Topology{"1", {0}}, Topology{"2", {0, 0}}, Topology{"1+1", {0, 1}},
                                           Topology{"4", {0, 0, 0, 0}}, Topology{"2+2", {0, 0, 1, 1}},
                                           Topology{"interleaved 2+2", {5, 2, 5, 2}},
                                           Topology{"8", {0, 0, 0, 0, 0, 0, 0, 0}},
                                           Topology{"2x4", {0, 0, 1, 1, 2, 2, 3, 3}},
                                           Topology{"4+4", {0, 0, 0, 0, 1, 1, 1, 1}}));

class Methods : public ::testing::TestWithParam<std::string> {};

// Every method fills the devices with distinct rows, tells readers where rows are, and leaves no
// row without a place.
TEST_P(Methods, PlaceEveryRowSomewhere) {
  for (const test::GraphCase& c : test::random_graphs(9, 30)) {
    for (const int64_t host_rows : {int64_t{-1}, int64_t{0}, int64_t{5}}) {
      SCOPED_TRACE(c.name + " host " + std::to_string(host_rows));
      const int64_t vertices = c.graph.num_nodes();
      const std::vector<NodeId> train(vertices > 0 ? 1 : 0, 0);
      PlacementRequest request;
      request.method = GetParam();
      request.num_vertices = vertices;
      request.device_rows = {4, 0, 7};
      request.host_rows = host_rows;
      request.accesses = {&c.graph, {.fanout = {3, 2}}, train, 2};
      const FeaturePlacement placement = place_features(request);
      ASSERT_EQ(placement.devices(), 3);
      EXPECT_EQ(placement.method, GetParam());
      for (int d = 0; d < 3; ++d) {
        const std::vector<NodeId> rows = rows_of(placement, d);
        EXPECT_EQ(static_cast<int64_t>(rows.size()), std::min(vertices, request.device_rows[static_cast<size_t>(d)]));
        EXPECT_EQ(std::set<NodeId>(rows.begin(), rows.end()).size(), rows.size());
      }
      for (int reader = -1; reader < 3; ++reader) {
        const RowTables tables = row_tables(placement, reader);
        for (int64_t v = 0; v < vertices; ++v) {
          const RowHolder by = tables.dev_num[v];
          const NodeId at = tables.buf_pos[v];
          if (by >= 0) {
            EXPECT_EQ(placement.device_rows[static_cast<size_t>(by)][at], static_cast<NodeId>(v));
          } else if (by == kHeldByHost && !placement.host_whole) {
            EXPECT_EQ(placement.host_rows[at], static_cast<NodeId>(v));
          } else {
            EXPECT_EQ(at, static_cast<NodeId>(v));
            EXPECT_EQ(by, placement.host_whole ? kHeldByHost : kHeldByDisk);
          }
        }
      }
    }
  }
}

TEST_P(Methods, AreTheSameOnAnyNumberOfThreads) {
  const Graph graph = test::random_graphs(4, 300)[0].graph;
  const std::vector<NodeId> train{1, 5, 9, 13, 17, 21, 25};
  PlacementRequest request;
  request.method = GetParam();
  request.num_vertices = graph.num_nodes();
  request.device_rows = {40, 40};
  request.host_rows = 50;
  request.accesses = {&graph, {.fanout = {3, 2}}, train, 3};
  const int threads = num_threads();
  set_num_threads(1);
  const FeaturePlacement one = place_features(request);
  set_num_threads(3);
  const FeaturePlacement three = place_features(request);
  set_num_threads(threads);
  for (int d = 0; d < 2; ++d) EXPECT_EQ(rows_of(one, d), rows_of(three, d));
  EXPECT_EQ(std::vector<NodeId>(one.host_rows.begin(), one.host_rows.end()),
            std::vector<NodeId>(three.host_rows.begin(), three.host_rows.end()));
}

// The expected cost of the method that wins is below that of every other method.
TEST_P(Methods, DoNotBeatProbabilities) {
  for (const std::vector<int>& group : {std::vector<int>{0}, {0, 0}, {0, 0, 1, 1}}) {
    const Graph graph = make_undirected(test::random_graphs(8, 400)[0].graph);
    std::vector<NodeId> train;
    for (NodeId v = 0; v < 400; v += 4) train.push_back(v);
    PlacementRequest request;
    request.num_vertices = graph.num_nodes();
    request.device_rows.assign(group.size(), 50);
    request.group = group;
    request.accesses = {&graph, {.fanout = {3, 2}}, train, 10};
    const FeaturePlacement best = place_features(request);
    request.method = GetParam();
    const FeaturePlacement other = place_features(request);
    const auto mean = [&](const FeaturePlacement& p) {
      const std::vector<double> each = costs_of(p, best.reads, request.costs);
      return std::accumulate(each.begin(), each.end(), 0.0);
    };
    EXPECT_LE(mean(best), mean(other) * 1.000001);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Methods, ::testing::ValuesIn(placement_method_names()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Placement, TheHostKeepsTheRowsThatDevicesMiss) {
  const std::vector<float> reads{9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  PlacementRequest request;
  request.num_vertices = 10;
  request.device_rows = {2, 2};
  request.group = {0, 1};
  request.reads = reads;
  request.host_rows = 3;
  const FeaturePlacement placement = place_features(request);
  EXPECT_EQ(std::vector<NodeId>(placement.host_rows.begin(), placement.host_rows.end()),
            (std::vector<NodeId>{2, 3, 4}));
  const std::vector<TierReads> expected = expected_reads(placement, reads);
  EXPECT_DOUBLE_EQ(expected[0].own, 17 * 0.5);
  EXPECT_DOUBLE_EQ(expected[0].host, 18 * 0.5);
  EXPECT_DOUBLE_EQ(expected[0].disk, 10 * 0.5);
  EXPECT_DOUBLE_EQ(largest_cost(expected, request.costs), (18 + 10 * 10) * 0.5);
}

TEST(Placement, SharesOfTheBatchesScaleTheReads) {
  const std::vector<float> reads{3, 2, 1};
  PlacementRequest request;
  request.num_vertices = 3;
  request.device_rows = {1, 1};
  request.group = {0, 1};
  request.reads = reads;
  const std::vector<double> share{3, 1};
  const std::vector<TierReads> expected = expected_reads(place_features(request), reads, share);
  EXPECT_DOUBLE_EQ(expected[0].total(), 4.5);
  EXPECT_DOUBLE_EQ(expected[1].total(), 1.5);
}

TEST(Placement, AnUnknownMethodIsRefused) {
  EXPECT_THROW(placement_method("probabilty"), UserError);
  EXPECT_EQ(placement_method("METIS").name, "metis");
}

}  // namespace
}  // namespace nacre

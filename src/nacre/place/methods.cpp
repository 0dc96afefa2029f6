#include "nacre/place/methods.h"

#include <algorithm>
#include <array>

#include "nacre/base/error.h"
#include "nacre/graph/degrees.h"
#include "nacre/partition/partition.h"
#include "nacre/place/ranking.h"
#include "nacre/place/spread.h"

namespace nacre {
namespace {

const Graph& graph_of(const PlacementRequest& request) {
  NACRE_CHECK(request.accesses.graph != nullptr, "this method of placement needs the graph");
  return *request.accesses.graph;
}

// Returns the numbers of rows that the given devices can hold.
std::vector<int64_t> capacities(const PlacementRequest& request, std::span<const int> devices) {
  std::vector<int64_t> rows;
  for (const int d : devices) rows.push_back(request.device_rows[static_cast<size_t>(d)]);
  return rows;
}

// Runs Algorithm 1 in every group. A row counts as read more often the larger its entry in `values`
// is; the values may be expected reads, counted reads or degrees.
PlacedRows spread_by(const PlacementRequest& request, std::span<const float> values) {
  PlacedRows placed;
  placed.order = rank_vertices(values);
  placed.device_rows.resize(request.device_rows.size());
  for (const std::vector<int>& devices : devices_of_groups(request.group)) {
    const double alpha =
        request.alpha >= 0 ? request.alpha : best_alpha(request.costs, static_cast<int>(devices.size()));
    std::vector<Array<NodeId>> rows = spread_rows(placed.order, values, capacities(request, devices), alpha);
    for (size_t i = 0; i < devices.size(); ++i)
      placed.device_rows[static_cast<size_t>(devices[i])] = std::move(rows[i]);
  }
  return placed;
}

PlacedRows by_probability(const PlacementRequest& request) { return spread_by(request, request.reads); }

PlacedRows by_presampling(const PlacementRequest& request) {
  graph_of(request);
  const int64_t batches =
      request.presampled_batches > 0 ? request.presampled_batches : batches_of_epoch(request.accesses);
  std::vector<float> counted = presampled_accesses(request.accesses, batches);
  PlacedRows placed = spread_by(request, counted);
  placed.reads = std::move(counted);
  return placed;
}

PlacedRows by_degree(const PlacementRequest& request) {
  const std::vector<int64_t> degrees = out_degrees(graph_of(request));
  return spread_by(request, std::vector<float>(degrees.begin(), degrees.end()));
}

// Gives every device of a group the rows of its part, the most wanted first, and then, if there is
// room, the most wanted rows of other parts. `part_of(v)` returns the position in `devices` of the
// device whose part has vertex v.
template <class PartOf>
void fill_group(const PlacementRequest& request, std::span<const int> devices, const PartOf& part_of,
                PlacedRows& placed) {
  std::vector<std::vector<NodeId>> rows(devices.size());
  const std::vector<int64_t> most = capacities(request, devices);
  const auto room = [&](size_t d) { return most[d] - static_cast<int64_t>(rows[d].size()); };
  for (const NodeId v : placed.order) {
    const auto d = static_cast<size_t>(part_of(v));
    if (room(d) > 0) rows[d].push_back(v);
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    for (int64_t i = 0; i < placed.order.size() && room(d) > 0; ++i) {
      const NodeId v = placed.order[i];
      if (static_cast<size_t>(part_of(v)) != d) rows[d].push_back(v);
    }
    placed.device_rows[static_cast<size_t>(devices[d])] = std::move(rows[d]);
  }
}

// Cuts a sequence of all vertices into equal runs, one for each device of a group.
PlacedRows by_runs(const PlacementRequest& request, const Array<NodeId>& sequence, Array<NodeId> order) {
  PlacedRows placed;
  placed.order = std::move(order);
  placed.device_rows.resize(request.device_rows.size());
  Buffer<NodeId> place(sequence.size());
  for (int64_t i = 0; i < sequence.size(); ++i) place[sequence[i]] = static_cast<NodeId>(i);
  for (const std::vector<int>& devices : devices_of_groups(request.group)) {
    const auto parts = static_cast<int64_t>(devices.size());
    fill_group(
        request, devices, [&](NodeId v) { return int64_t{place[v]} * parts / sequence.size(); }, placed);
  }
  return placed;
}

PlacedRows naive(const PlacementRequest& request) {
  const Array<NodeId> all = vertices_in_order(request.num_vertices);
  return by_runs(request, all, all);
}
PlacedRows at_random(const PlacementRequest& request) {
  const Array<NodeId> all = vertices_at_random(request.num_vertices, request.seed);
  return by_runs(request, all, all);
}
PlacedRows naive_hot(const PlacementRequest& request) {
  return by_runs(request, vertices_in_order(request.num_vertices), rank_vertices(request.reads));
}
PlacedRows random_hot(const PlacementRequest& request) {
  return by_runs(request, vertices_at_random(request.num_vertices, request.seed), rank_vertices(request.reads));
}

PlacedRows by_metis(const PlacementRequest& request) {
  const Graph& graph = graph_of(request);
  PlacedRows placed;
  placed.order = rank_vertices(request.reads);
  placed.device_rows.resize(request.device_rows.size());
  PartitionOptions options;
  options.row_work = 1;
  options.edge_work = 0;
  options.seed = request.seed;
  options.use_cache = false;
  for (const std::vector<int>& devices : devices_of_groups(request.group)) {
    const std::vector<double> shares(devices.size(), 1.0);
    const Partition partition = partition_graph(graph, shares, options);
    fill_group(
        request, devices, [&](NodeId v) { return partition.part[v]; }, placed);
  }
  return placed;
}

constexpr std::array<PlacementRule, 9> kRules{{
    {{"probability", "spreads rows over devices by the computed probability that a batch reads them", true},
     by_probability},
    {{"presampling", "spreads rows over devices by how often sampled batches read them", false}, by_presampling},
    {{"degree", "spreads rows over devices by the out-degrees of their nodes", false}, by_degree},
    {{"metis", "gives each device the most read rows of its METIS part", true}, by_metis},
    {{"pagraph", "gives each device the most read rows near its training nodes", true}, place_by_pagraph},
    {{"naive-hot", "gives each device the most read rows of its run of consecutive nodes", true}, naive_hot},
    {{"random-hot", "gives each device the most read rows of its random part", true}, random_hot},
    {{"naive", "gives each device the first rows of its run of consecutive nodes", false}, naive},
    {{"random", "gives each device random rows of its random part", false}, at_random},
}};

}  // namespace

std::span<const PlacementRule> placement_rules() { return kRules; }

std::vector<std::vector<int>> devices_of_groups(std::span<const int> group) {
  std::vector<int> numbers(group.begin(), group.end());
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::vector<int>> devices(numbers.size());
  for (size_t d = 0; d < group.size(); ++d) {
    const auto at = std::lower_bound(numbers.begin(), numbers.end(), group[d]) - numbers.begin();
    devices[static_cast<size_t>(at)].push_back(static_cast<int>(d));
  }
  return devices;
}

}  // namespace nacre

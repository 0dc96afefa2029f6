#include "nacre/place/placement.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/place/methods.h"
#include "nacre/place/ranking.h"

namespace nacre {
namespace {

constexpr int64_t kTableChunk = 1 << 16;

void check_request(const PlacementRequest& request) {
  const size_t devices = request.device_rows.size();
  NACRE_CHECK(devices <= kMostHolders, "there are more devices than a table of holders can name");
  NACRE_CHECK(request.group.empty() || request.group.size() == devices, "not every device has a group");
  NACRE_CHECK(request.share.empty() || request.share.size() == devices, "not every device has a share");
  NACRE_CHECK(request.reads.empty() || static_cast<int64_t>(request.reads.size()) == request.num_vertices,
              "not every vertex has a number of reads");
  NACRE_CHECK(request.accesses.graph == nullptr || request.accesses.graph->num_nodes() == request.num_vertices,
              "the graph has another number of vertices than the request");
}

std::vector<double> whole_shares(std::span<const double> share, size_t devices) {
  std::vector<double> shares(share.begin(), share.end());
  if (shares.empty()) shares.assign(devices, 1.0);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum > 0) {
    for (double& each : shares) each /= sum;
  }
  return shares;
}

// Returns for every vertex the share of all batches whose device finds the row neither in its own
// memory nor in that of a peer.
std::vector<float> missing_shares(const FeaturePlacement& placement, std::span<const double> share) {
  std::vector<float> missing(static_cast<size_t>(placement.num_vertices), 0.0f);
  for (int reader = 0; reader < placement.devices(); ++reader) {
    const RowTables tables = row_tables(placement, reader);
    const auto weight = static_cast<float>(share[static_cast<size_t>(reader)]);
    parallel_for(placement.num_vertices, kTableChunk, [&](int64_t b, int64_t e) {
      for (int64_t v = b; v < e; ++v) missing[static_cast<size_t>(v)] += tables.dev_num[v] < 0 ? weight : 0.0f;
    });
  }
  if (placement.devices() == 0) std::fill(missing.begin(), missing.end(), 1.0f);
  return missing;
}

// Returns the rows of a host that cannot hold all rows: those that devices are expected to read
// from it most often. A row that every device finds in its own memory or in that of a peer gets no
// place on the host.
Array<NodeId> choose_host_rows(const FeaturePlacement& placement, const PlacementRequest& request,
                               const Array<NodeId>& wanted, std::span<const float> reads) {
  std::vector<float> missing = missing_shares(placement, whole_shares(request.share, request.device_rows.size()));
  Array<NodeId> order = wanted;
  if (!reads.empty()) {
    std::vector<float> value(missing);
    for (size_t v = 0; v < value.size(); ++v) value[v] *= reads[v];
    order = rank_vertices(value);
  }
  std::vector<NodeId> rows;
  for (int64_t i = 0; i < order.size() && static_cast<int64_t>(rows.size()) < request.host_rows; ++i) {
    if (missing[order[i]] > 0) rows.push_back(order[i]);
  }
  return rows;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const PlacementRule& rule_of(const std::string& name, const std::string& option) {
  const std::string known = choose_name(option, "method of placement", name, placement_method_names());
  for (const PlacementRule& rule : placement_rules()) {
    if (rule.method.name == known) return rule;
  }
  throw InternalError(__FILE__, __LINE__, "a known method of placement is not in the list");
}

}  // namespace

int64_t FeaturePlacement::rows_on_devices() const {
  int64_t sum = 0;
  for (const Array<NodeId>& rows : device_rows) sum += rows.size();
  return sum;
}

double best_alpha(const RowCosts& costs, int devices) {
  const double peer = costs.peer - costs.own, host = costs.host - costs.own;
  if (peer >= host) return 1;
  return peer / (devices * host - (devices - 1) * peer);
}

FeaturePlacement place_features(const PlacementRequest& request) {
  check_request(request);
  const double start = seconds_now();
  const PlacementRule& rule = rule_of(request.method, "--placement");
  PlacementRequest whole = request;
  const size_t devices = request.device_rows.size();
  if (whole.group.empty()) whole.group.assign(devices, 0);
  // If reading from a peer is no cheaper than reading from the host (or from the disk, if the host
  // holds no rows), each device is a group of its own (Rule 1).
  const bool peers = request.costs.peer < (request.host_rows == 0 ? request.costs.disk : request.costs.host);
  if (!peers) std::iota(whole.group.begin(), whole.group.end(), 0);
  if (request.host_rows == 0) whole.costs.host = request.costs.disk;
  FeaturePlacement placement;
  if (rule.method.uses_reads && request.reads.empty() && request.num_vertices > 0) {
    NACRE_CHECK(request.accesses.graph != nullptr, "there are neither reads nor a graph to compute them from");
    placement.reads = access_probabilities(request.accesses);
    whole.reads = placement.reads;
  }
  PlacedRows placed = rule.place(whole);
  if (!placed.reads.empty()) placement.reads = std::move(placed.reads);
  if (placement.reads.empty()) placement.reads.assign(request.reads.begin(), request.reads.end());
  placement.method = rule.method.name;
  placement.num_vertices = request.num_vertices;
  placement.group = std::move(whole.group);
  placement.reads_peers = placed.reads_peers && peers;
  placement.device_rows = std::move(placed.device_rows);
  placement.host_whole = request.host_rows < 0 || request.host_rows >= request.num_vertices;
  if (!placement.host_whole) {
    const std::span<const float> reads = rule.method.uses_reads ? whole.reads : std::span<const float>();
    placement.host_rows = choose_host_rows(placement, whole, placed.order, reads);
  }
  placement.seconds = seconds_now() - start;
  return placement;
}

RowTables row_tables(const FeaturePlacement& placement, int reader) {
  Buffer<RowHolder> holder(placement.num_vertices);
  Buffer<NodeId> position(placement.num_vertices);
  const RowHolder behind = placement.host_whole ? kHeldByHost : kHeldByDisk;
  parallel_for(placement.num_vertices, kTableChunk, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) {
      holder[v] = behind;
      position[v] = static_cast<NodeId>(v);
    }
  });
  const auto write = [&](const Array<NodeId>& rows, RowHolder by) {
    parallel_for(rows.size(), kTableChunk, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        holder[rows[i]] = by;
        position[rows[i]] = static_cast<NodeId>(i);
      }
    });
  };
  // Later writes replace earlier ones, so the cheapest place is written last.
  write(placement.host_rows, kHeldByHost);
  const auto own = static_cast<size_t>(reader);
  for (size_t d = placement.device_rows.size(); reader >= 0 && placement.reads_peers && d-- > 0;) {
    if (d != own && placement.group[d] == placement.group[own])
      write(placement.device_rows[d], static_cast<RowHolder>(d));
  }
  if (reader >= 0) write(placement.device_rows[own], static_cast<RowHolder>(reader));
  return {std::move(holder).freeze(), std::move(position).freeze()};
}

std::vector<TierReads> expected_reads(const FeaturePlacement& placement, std::span<const float> reads,
                                      std::span<const double> share) {
  const std::vector<double> shares = whole_shares(share, placement.device_rows.size());
  std::vector<TierReads> result(placement.device_rows.size());
  std::vector<TierReads> parts(static_cast<size_t>((placement.num_vertices + kTableChunk - 1) / kTableChunk));
  for (size_t reader = 0; reader < result.size(); ++reader) {
    const RowTables tables = row_tables(placement, static_cast<int>(reader));
    parallel_for(placement.num_vertices, kTableChunk, [&](int64_t b, int64_t e) {
      TierReads sum;
      for (int64_t v = b; v < e; ++v) {
        const RowHolder by = tables.dev_num[v];
        double& tier = by == kHeldByHost                ? sum.host
                       : by == kHeldByDisk              ? sum.disk
                       : by == static_cast<int>(reader) ? sum.own
                                                        : sum.peer;
        tier += reads[static_cast<size_t>(v)];
      }
      parts[static_cast<size_t>(b / kTableChunk)] = sum;
    });
    TierReads& total = result[reader];
    for (const TierReads& part : parts) {
      total.own += part.own * shares[reader];
      total.peer += part.peer * shares[reader];
      total.host += part.host * shares[reader];
      total.disk += part.disk * shares[reader];
    }
  }
  return result;
}

double largest_cost(std::span<const TierReads> reads, const RowCosts& costs) {
  double largest = 0;
  for (const TierReads& each : reads) largest = std::max(largest, each.seconds(costs));
  return largest;
}

std::span<const PlacementMethod> placement_methods() {
  static const std::vector<PlacementMethod> all = [] {
    std::vector<PlacementMethod> methods;
    for (const PlacementRule& rule : placement_rules()) methods.push_back(rule.method);
    return methods;
  }();
  return all;
}

std::vector<std::string> placement_method_names() {
  std::vector<std::string> names;
  for (const PlacementMethod& method : placement_methods()) names.emplace_back(method.name);
  return names;
}

const PlacementMethod& placement_method(const std::string& name, const std::string& option) {
  return rule_of(name, option).method;
}

}  // namespace nacre

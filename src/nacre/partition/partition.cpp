#include "nacre/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/file_cache.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/cost/profile.h"
#include "nacre/partition/fennel.h"
#include "nacre/partition/multilevel.h"
#include "nacre/partition/simple.h"

namespace nacre {
namespace {

// This number is a part of the key of kept partitions. It must be increased when the same arguments
// give another partition than before.
constexpr int kVersion = 1;

constexpr std::string_view kNames[] = {"metis", "fennel", "range", "random"};

// Holds the parts whose shares are not 0. The methods see only these parts.
struct Active {
  std::vector<double> shares;
  std::vector<uint16_t> part;  // number of each of them among all parts
};

Active active_parts(std::span<const double> shares) {
  Active active;
  for (size_t p = 0; p < shares.size(); ++p) {
    if (shares[p] == 0) continue;
    active.shares.push_back(shares[p]);
    active.part.push_back(static_cast<uint16_t>(p));
  }
  return active;
}

std::vector<uint16_t> cut(const Graph& graph, std::span<const double> shares, const PartitionOptions& options) {
  if (shares.size() == 1) return std::vector<uint16_t>(graph.num_dst(), 0);
  switch (options.method) {
    case PartitionMethod::metis:
      return multilevel_parts(graph, shares, options);
    case PartitionMethod::fennel:
      return fennel_parts(graph, shares, options);
    case PartitionMethod::range:
      return range_parts(graph, shares, options);
    case PartitionMethod::random:
      return random_parts(graph, shares, options);
  }
  throw InternalError(__FILE__, __LINE__, "unknown method");
}

// ---- The functions below keep partitions in the cache: two bytes for each vertex, under a key of
// everything that the result depends on.

bool worth_keeping(const PartitionOptions& options) {
  return options.use_cache && (options.method == PartitionMethod::metis || options.method == PartitionMethod::fennel);
}

std::string cache_key(const Graph& graph, std::span<const double> shares, const PartitionOptions& o) {
  std::string key = fmt::format("partition {} {:016x} {} row {} edge {} imbalance {} passes {} seed {}\n", kVersion,
                                graph.fingerprint(), partition_method_name(o.method), o.row_work, o.edge_work,
                                o.imbalance, o.passes, o.seed);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (const double share : shares) key += fmt::format("{} ", share / sum);
  return key;
}

std::string partition_folder() {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/partitions";
}

// Returns the kept partition, or an empty list if nothing usable is kept.
std::vector<uint16_t> read_kept(const std::string& folder, const std::string& key, int64_t count, size_t parts) {
  const auto text = folder.empty() ? std::nullopt : read_cached(folder, key);
  if (!text || text->size() != static_cast<size_t>(count) * sizeof(uint16_t)) return {};
  std::vector<uint16_t> part(count);
  if (count > 0) std::memcpy(part.data(), text->data(), text->size());
  if (std::any_of(part.begin(), part.end(), [&](uint16_t p) { return p >= parts; })) return {};
  return part;
}

Partition numbered(const std::vector<uint16_t>& part, const Active& active, size_t parts) {
  Buffer<int32_t> out(static_cast<int64_t>(part.size()));
  parallel_for(out.size(), 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t v = b; v < e; ++v) out[v] = active.part[part[v]];
  });
  return {static_cast<int>(parts), std::move(out).freeze()};
}

}  // namespace

std::string_view partition_method_name(PartitionMethod method) { return kNames[static_cast<int>(method)]; }

std::vector<std::string> partition_method_names() { return {std::begin(kNames), std::end(kNames)}; }

PartitionMethod parse_partition_method(const std::string& name, const std::string& option) {
  const std::string known = choose_name(option, "method", name, partition_method_names());
  return static_cast<PartitionMethod>(std::find(std::begin(kNames), std::end(kNames), known) - std::begin(kNames));
}

void check_partition_options(std::span<const double> shares, const PartitionOptions& o) {
  const char* where = "--shares";
  if (shares.empty()) throw UserError(where, "there are no shares", "give one for each part, for example 1,2,4");
  if (shares.size() > static_cast<size_t>(kMostParts)) {
    throw UserError(where, fmt::format("{} parts are too many", human_count(std::ssize(shares))),
                    fmt::format("give at most {}", human_count(kMostParts)));
  }
  double sum = 0;
  for (const double share : shares) {
    if (!std::isfinite(share) || share < 0) {
      throw UserError(where, fmt::format("{} is not a share", share), "give numbers that are not negative");
    }
    sum += share;
  }
  if (!(sum > 0)) throw UserError(where, "all shares are 0", "give at least one part a share above 0");
  if (!std::isfinite(sum)) throw UserError(where, "the shares are too large", "give smaller numbers");
  for (const auto& [option, work] : {std::pair{"--row-work", o.row_work}, std::pair{"--edge-work", o.edge_work}}) {
    if (!std::isfinite(work) || work < 0 || work > 1e9)
      throw UserError(option, fmt::format("{} is not an amount of work", work), "give a number from 0 to 1e9");
  }
  if (!(o.row_work + o.edge_work > 0))
    throw UserError("--row-work", "neither nodes nor edges are work", "give --row-work or --edge-work above 0");
  if (!(o.imbalance > 0 && o.imbalance < 1))
    throw UserError("--imbalance", fmt::format("{} is out of range", o.imbalance), "give a share such as 0.03");
  if (o.passes < 1 || o.passes > 100)
    throw UserError("--passes", fmt::format("{} is out of range", o.passes), "give 1 to 100");
}

Partition partition_graph(const Graph& graph, std::span<const double> shares, const PartitionOptions& options) {
  check_partition_options(shares, options);
  NACRE_CHECK(graph.num_src() == graph.num_dst(), "only whole graphs are partitioned, not blocks");
  const Active active = active_parts(shares);
  if (!worth_keeping(options) || active.shares.size() == 1)
    return numbered(cut(graph, active.shares, options), active, shares.size());
  const std::string folder = partition_folder(), key = cache_key(graph, active.shares, options);
  std::vector<uint16_t> part = read_kept(folder, key, graph.num_dst(), active.shares.size());
  const bool found = !part.empty();
  if (!found) part = cut(graph, active.shares, options);
  if (!found && !folder.empty()) {
    write_cached(folder, key, {reinterpret_cast<const char*>(part.data()), part.size() * sizeof(uint16_t)});
  }
  Partition result = numbered(part, active, shares.size());
  result.cached = found;
  return result;
}

int64_t partition_bytes(const GraphCounts& graph, int parts, const PartitionOptions& options, bool symmetric) {
  const int64_t result = graph.nodes * (4 + 2);
  const int64_t kept = worth_keeping(options) ? graph.nodes * 4 : 0;
  switch (options.method) {
    case PartitionMethod::metis:
      return std::max(result + kept, multilevel_bytes(graph, symmetric));
    case PartitionMethod::fennel:
      return std::max(result + kept, fennel_bytes(graph, parts));
    case PartitionMethod::range:
      return std::max(result, graph.nodes * (8 + 2));
    case PartitionMethod::random:
      return std::max(result, graph.nodes * (8 + 8 + 2));
  }
  return 0;
}

}  // namespace nacre

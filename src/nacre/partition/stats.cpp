#include "nacre/partition/stats.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kStatsChunk = 1 << 12;
constexpr int kPerWord = 64;

// Holds what one thread has counted. The sums over threads do not depend on their order, because
// they are sums of whole numbers.
struct Counts {
  explicit Counts(int parts)
      : vertices(parts, 0), edges(parts, 0), inside(parts, 0), between(static_cast<size_t>(parts) * parts, 0) {}
  std::vector<int64_t> vertices, edges, inside, between;
};

void count_edges(const Graph& graph, const Partition& partition, PartitionStats& stats) {
  const int parts = partition.num_parts;
  std::vector<Counts> counts(num_threads(), Counts(parts));
  parallel_for(graph.num_dst(), kStatsChunk, [&](int64_t b, int64_t e) {
    Counts& own = counts[thread_index()];
    for (int64_t v = b; v < e; ++v) {
      const int32_t p = partition.part[v];
      int64_t* row = &own.between[static_cast<size_t>(p) * parts];
      const int64_t before = row[p];
      for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) ++row[partition.part[graph.col_idx()[i]]];
      ++own.vertices[p];
      own.edges[p] += graph.in_degree(v);
      own.inside[p] += row[p] - before == graph.in_degree(v);
    }
  });
  for (const Counts& own : counts) {
    for (int p = 0; p < parts; ++p) {
      stats.parts[p].vertices += own.vertices[p];
      stats.parts[p].edges += own.edges[p];
      stats.parts[p].inside += own.inside[p];
    }
    for (size_t i = 0; i < own.between.size(); ++i) stats.between[i] += own.between[i];
  }
}

// Counts the rows of halos. Marks, for 64 parts at a time, which of these parts need each vertex.
void count_halos(const Graph& graph, const Partition& partition, PartitionStats& stats) {
  std::vector<std::atomic<uint64_t>> needed(graph.num_dst());
  for (int first = 0; first < partition.num_parts; first += kPerWord) {
    parallel_for(graph.num_dst(), kStatsChunk, [&](int64_t b, int64_t e) {
      for (int64_t v = b; v < e; ++v) {
        const int bit = partition.part[v] - first;
        if (bit < 0 || bit >= kPerWord) continue;
        const uint64_t mark = uint64_t{1} << bit;
        for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
          const NodeId u = graph.col_idx()[i];
          if (partition.part[u] == partition.part[v]) continue;
          if ((needed[u].load(std::memory_order_relaxed) & mark) == 0)
            needed[u].fetch_or(mark, std::memory_order_relaxed);
        }
      }
    });
    for (int64_t u = 0; u < graph.num_dst(); ++u) {
      uint64_t marks = needed[u].load(std::memory_order_relaxed);
      needed[u].store(0, std::memory_order_relaxed);
      const int32_t owner = partition.part[u];
      stats.parts[owner].sent += std::popcount(marks);
      for (; marks != 0; marks &= marks - 1) {
        const int reader = first + std::countr_zero(marks);
        ++stats.parts[reader].halo;
        ++stats.rows[static_cast<size_t>(reader) * partition.num_parts + owner];
      }
    }
  }
}

}  // namespace

double PartStats::fill() const { return target > 0 ? work / target : work > 0 ? INFINITY : 1; }

double PartitionStats::imbalance() const {
  double worst = 0;
  for (const PartStats& part : parts) worst = std::max(worst, std::fabs(part.fill() - 1));
  return worst;
}

PartitionStats partition_stats(const Graph& graph, const Partition& partition, std::span<const double> shares,
                               const PartitionOptions& options) {
  const int parts = partition.num_parts;
  NACRE_CHECK(partition.part.size() == graph.num_dst() && std::ssize(shares) == parts,
              "the partition belongs to another graph");
  PartitionStats stats;
  stats.parts.resize(parts);
  stats.between.assign(static_cast<size_t>(parts) * parts, 0);
  stats.rows = stats.between;
  stats.edges = graph.num_edges();
  count_edges(graph, partition, stats);
  count_halos(graph, partition, stats);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double work = options.row_work * static_cast<double>(graph.num_dst()) +
                      options.edge_work * static_cast<double>(graph.num_edges());
  stats.cut_edges = stats.edges;
  for (int p = 0; p < parts; ++p) {
    PartStats& part = stats.parts[p];
    part.work =
        options.row_work * static_cast<double>(part.vertices) + options.edge_work * static_cast<double>(part.edges);
    part.target = work * shares[p] / sum;
    stats.cut_edges -= stats.between[static_cast<size_t>(p) * parts + p];
    stats.volume += part.halo;
  }
  return stats;
}

int64_t partition_stats_bytes(const GraphCounts& graph, int parts) {
  return graph.nodes * 8 + int64_t{parts} * parts * 8 * (num_threads() + 2);
}

}  // namespace nacre

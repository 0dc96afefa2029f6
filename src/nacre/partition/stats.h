// Computes figures that say how good a partition is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/partition/partition.h"

namespace nacre {

struct PartStats {
  int64_t vertices = 0;
  int64_t edges = 0;   // edges that lead to vertices of the part
  double work = 0;     // work of the part's vertices, by row_work and edge_work
  double target = 0;   // the work that the part should have
  int64_t halo = 0;    // vertices of other parts at which its edges start: rows that it receives
  int64_t sent = 0;    // rows that it sends: each vertex counts once for each part that needs it
  int64_t inside = 0;  // vertices whose sources are all in the part, so that they need no halo

  // Returns the work as a multiple of the target: 1 if both are 0, and infinity if only the target
  // is 0.
  double fill() const;
};

struct PartitionStats {
  std::vector<PartStats> parts;
  int64_t cut_edges = 0;  // edges whose ends are in different parts
  int64_t edges = 0;
  int64_t volume = 0;  // rows that all parts together receive in one exchange
  // This matrix of parts × parts has the number of edges from the part of the column to the part of
  // the row.
  std::vector<int64_t> between;
  // This matrix of parts × parts has, at (i, j), the number of rows that part i receives from part
  // j.
  std::vector<int64_t> rows;

  double cut_share() const { return edges > 0 ? static_cast<double>(cut_edges) / static_cast<double>(edges) : 0; }
  // Returns the largest distance of a part's work from its target, as a share of the target.
  double imbalance() const;
};

PartitionStats partition_stats(const Graph& graph, const Partition& partition, std::span<const double> shares,
                               const PartitionOptions& options);
int64_t partition_stats_bytes(const GraphCounts& graph, int parts);

}  // namespace nacre

// Implements the method metis: the graph is coarsened in parallel until METIS, which uses one
// thread, has little left to do. The parts of the coarse graph are then carried back level by
// level, and refined at each level.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/partition/partition.h"

namespace nacre {

// Returns a part for every vertex. There must be at least two shares, all of them positive.
std::vector<uint16_t> multilevel_parts(const Graph& graph, std::span<const double> shares,
                                       const PartitionOptions& options);
int64_t multilevel_bytes(const GraphCounts& graph, bool symmetric);

}  // namespace nacre

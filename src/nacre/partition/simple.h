// Implements the methods range and random, which do not look at edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/partition/partition.h"

namespace nacre {

// Returns parts for all vertices, such that each part has consecutive vertices.
std::vector<uint16_t> range_parts(const Graph& graph, std::span<const double> shares, const PartitionOptions& options);
// Returns parts for all vertices, which are brought into a random order first; each part has
// vertices that follow one another in this order.
std::vector<uint16_t> random_parts(const Graph& graph, std::span<const double> shares, const PartitionOptions& options);

}  // namespace nacre

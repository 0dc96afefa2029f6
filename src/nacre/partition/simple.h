// The methods range and random, which do not look at edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/partition/partition.h"

namespace nacre {

// Each part gets consecutive vertices.
std::vector<uint16_t> range_parts(const Graph& graph, std::span<const double> shares, const PartitionOptions& options);
// Each part gets consecutive vertices of a random order.
std::vector<uint16_t> random_parts(const Graph& graph, std::span<const double> shares, const PartitionOptions& options);

}  // namespace nacre

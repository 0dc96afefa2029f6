// Computes the work of vertices as whole numbers, and how much of it each part should get.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/partition/partition.h"

namespace nacre {

// Returns the work of every vertex in fixed-point units, so that sums do not depend on their order.
Buffer<int64_t> vertex_work(const Graph& graph, const PartitionOptions& options);
// Returns how many fixed-point units a work of 1 has.
double work_units(const Graph& graph, const PartitionOptions& options);
int64_t sum_of(const Buffer<int64_t>& values);

// Holds the target and the bounds of the work of each part.
struct Balance {
  std::vector<int64_t> target;
  std::vector<int64_t> low;
  std::vector<int64_t> high;

  int parts() const { return static_cast<int>(target.size()); }
};
Balance balance_of(int64_t total, std::span<const double> shares, double imbalance);

// Returns the work of each part.
std::vector<int64_t> loads_of(const uint16_t* part, const int64_t* work, int64_t count, int parts);

}  // namespace nacre

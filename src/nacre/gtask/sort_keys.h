// The order a partition table wants the edges in: its restricted attributes, most significant
// first. (Private to the room.)
//
// Edge types come first, then degrees, then the ids of the two ends: the more tightly restricted of
// a pair leads (k = 1, then `min`, then growing k; the destination when equal), so that a gTask
// meets few values of it before it is full. Two ends that may both have several ids (2-D) are
// sorted by blocks of k ids instead, which are the tiles of the adjacency matrix; the scan still
// counts distinct ids, so it joins thin tiles and never overfills. edge-id needs no sorting: every
// edge has its own.
#pragma once

#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/gtask/table.h"

namespace nacre {

struct SortKey {
  Location location;
  Attribute attribute;
  int64_t block = 1;  // ids only: sort by id / block
  friend bool operator==(const SortKey&, const SortKey&) = default;
};

std::vector<SortKey> sort_keys(const PartitionTable& table);

// The same order of a graph's edges with as few keys as possible: ties keep in-CSR order (dst,
// src), so trailing keys that say the same are left out, and so are the types of a graph that has
// none. [src-id] is the out-CSC order.
std::vector<SortKey> essential_keys(std::vector<SortKey> keys, const Graph& graph);

}  // namespace nacre

// The order in which a partition table needs the edges: its restricted attributes, the most
// significant first. This header is private to its room.
//
// Edge types come first, then degrees, then the ids of the two ends. Of the two ends, the more
// tightly restricted one comes first (k = 1, then `min`, then growing k; the destination if both
// are equal), so that a gTask meets few values of it before it is full. Two ends that may both have
// several ids (2-D) are sorted by blocks of k ids instead, which are the tiles of the adjacency
// matrix; the scan still counts distinct ids, so it joins thin tiles and never overfills. edge-id
// needs no sorting, because every edge has an id of its own.
#pragma once

#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/gtask/table.h"

namespace nacre {

struct SortKey {
  Location location;
  Attribute attribute;
  int64_t block = 1;  // for ids only: sort by id / block
  friend bool operator==(const SortKey&, const SortKey&) = default;
};

std::vector<SortKey> sort_keys(const PartitionTable& table);

// Returns keys that give the same order of the graph's edges with as few keys as possible. Edges
// that are equal in all keys keep the in-CSR order (dst, src), so trailing keys that sort in this
// order are left out, and so are the types of a graph without types. [src-id] is the out-CSC order.
std::vector<SortKey> essential_keys(std::vector<SortKey> keys, const Graph& graph);

}  // namespace nacre

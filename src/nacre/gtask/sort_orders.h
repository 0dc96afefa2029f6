// Permutations of the edges by sort keys, made by stable radix sorts and kept for the next table.
// This header is private to its room.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/gtask/partition.h"
#include "nacre/gtask/sort_keys.h"

namespace nacre {

struct EdgeOrder {
  std::vector<SortKey> keys;  // what essential_keys() returns
  Array<EdgeId> edge;         // empty: the edges are in in-CSR order
  Array<NodeId> src;
  Array<NodeId> dst;
  Array<uint16_t> type;  // empty: the graph has no types
  int64_t bytes() const { return (edge.size() + src.size() + dst.size()) * 4 + type.size() * 2; }
};

// Makes and keeps orders. Only one thread at a time may use an object.
class SortOrders {
 public:
  explicit SortOrders(Graph graph) : graph_(std::move(graph)) {}
  const Graph& graph() const { return graph_; }

  EdgeOrder order(const PartitionTable& table);
  int64_t bytes() const;                    // bytes of the orders that are kept
  int64_t sorts() const { return sorts_; }  // number of keys that were sorted by so far

 private:
  bool find(std::span<const SortKey> keys, EdgeOrder& order);
  void keep(const EdgeOrder& order);

  Graph graph_;
  std::vector<EdgeOrder> kept_;  // the most recently used order is the last
  int64_t sorts_ = 0;
};

// Returns the number of edges of every vertex at one end of the edges (src or dst).
std::vector<NodeId> degrees_at(const Graph& graph, Location end);

}  // namespace nacre

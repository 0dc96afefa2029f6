// Edge permutations by sort keys, made by stable radix sorts and kept for the next table. (Private
// to the room.)
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/gtask/partition.h"
#include "nacre/gtask/sort_keys.h"

namespace nacre {

struct EdgeOrder {
  std::vector<SortKey> keys;  // essential
  Array<EdgeId> edge;         // empty: in-CSR order
  Array<NodeId> src;
  Array<NodeId> dst;
  Array<uint16_t> type;  // empty: no types
  int64_t bytes() const { return (edge.size() + src.size() + dst.size()) * 4 + type.size() * 2; }
};

// For one thread at a time.
class SortOrders {
 public:
  explicit SortOrders(Graph graph) : graph_(std::move(graph)) {}
  const Graph& graph() const { return graph_; }

  EdgeOrder order(const PartitionTable& table);
  int64_t bytes() const;                    // of the orders it keeps
  int64_t sorts() const { return sorts_; }  // keys sorted by so far

 private:
  bool find(std::span<const SortKey> keys, EdgeOrder& order);
  void keep(const EdgeOrder& order);

  Graph graph_;
  std::vector<EdgeOrder> kept_;  // the most recently used last
  int64_t sorts_ = 0;
};

// Number of edges of every vertex at that end of the edges (src or dst).
std::vector<NodeId> degrees_at(const Graph& graph, Location end);

}  // namespace nacre

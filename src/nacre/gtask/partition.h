// The greedy partitioner (WG3): it sorts the edges by the restricted attributes, scans them once,
// and closes a gTask when the next edge would break a restriction. Its time is linear in the number
// of edges: the sort is a parallel, stable radix sort for each attribute. The result is the same on
// any number of threads.
#pragma once

#include <memory>

#include "nacre/graph/graph.h"
#include "nacre/gtask/table.h"

namespace nacre {

// The gTasks of a graph as flat arrays over a permutation of its edges. The edges of gTask t are
// the entries i in [task_ptr[t], task_ptr[t+1]).
struct GTasks {
  Graph graph;
  PartitionTable table;
  Array<int64_t> task_ptr;  // num_tasks + 1 elements
  // In-CSR position of each entry's edge; empty if entry i is the edge at position i for all i.
  Array<EdgeId> edge;
  Array<NodeId> src;     // source of each entry
  Array<NodeId> dst;     // destination of each entry
  Array<uint16_t> type;  // type of each entry; empty if the graph has no types

  int64_t num_tasks() const { return task_ptr.size() - 1; }
  int64_t num_edges() const { return src.size(); }
  int64_t edge_at(int64_t i) const { return edge.empty() ? i : edge[i]; }
  int type_at(int64_t i) const { return type.empty() ? 0 : type[i]; }
  int64_t bytes() const;  // bytes besides the arrays of the graph, which src and dst often share
};

// Keeps sort orders that were made for a graph (up to a few gigabytes), so that tables that sort by
// the same attributes share them. Pass one object to all calls of partition() for the same graph,
// from one thread at a time.
class SortOrders;
std::shared_ptr<SortOrders> make_sort_orders(const Graph& graph);

GTasks partition(const Graph& graph, const PartitionTable& table, SortOrders* orders = nullptr);

}  // namespace nacre

// The greedy partitioner (WG3): sort the edges by the restricted attributes, scan once, close a
// gTask when a restriction would break. Linear in the number of edges: the sort is a stable radix
// sort per attribute, in parallel; the result is the same on any number of threads.
#pragma once

#include <memory>

#include "nacre/graph/graph.h"
#include "nacre/gtask/table.h"

namespace nacre {

// The gTasks of a graph as flat arrays over a permutation of its edges. Entries i in [task_ptr[t],
// task_ptr[t+1]) are gTask t's edges.
struct GTasks {
  Graph graph;
  PartitionTable table;
  Array<int64_t> task_ptr;  // num_tasks + 1
  // in-CSR position of each entry; empty when it is the entry's own number
  Array<EdgeId> edge;
  Array<NodeId> src;     // of each entry
  Array<NodeId> dst;     // of each entry
  Array<uint16_t> type;  // of each entry; empty when the graph has no types

  int64_t num_tasks() const { return task_ptr.size() - 1; }
  int64_t num_edges() const { return src.size(); }
  int64_t edge_at(int64_t i) const { return edge.empty() ? i : edge[i]; }
  int type_at(int64_t i) const { return type.empty() ? 0 : type[i]; }
  int64_t bytes() const;  // besides the graph's own arrays, which src and dst often are
};

// Sort orders already made for a graph; tables that sort by the same attributes share them (up to a
// few gigabytes). Give one to several calls of partition() for the same graph, from one thread at a
// time.
class SortOrders;
std::shared_ptr<SortOrders> make_sort_orders(const Graph& graph);

GTasks partition(const Graph& graph, const PartitionTable& table, SortOrders* orders = nullptr);

}  // namespace nacre

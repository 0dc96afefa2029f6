// UndirectedView: a graph as partitioners see it, undirected and with edges weighted by the number
// of edges they stand for. A view borrows the arrays of a Graph or of a Coarse graph and copies
// nothing.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"

namespace nacre {

struct UndirectedView {
  int64_t count = 0;                 // number of vertices
  const int64_t* row_ptr = nullptr;  // where each list begins: count + 1 positions
  const NodeId* adjacent = nullptr;
  const uint32_t* weight = nullptr;  // null: every edge weighs 1
  // These are lists of further neighbours, by edges in the other direction. They are null if the
  // lists above have all neighbours.
  const int64_t* back_ptr = nullptr;
  const NodeId* back = nullptr;

  // Calls take(u, weight) for every entry (u, weight) of v's lists except self loops. A neighbour
  // may appear several times.
  template <class Take>
  void each(int64_t v, const Take& take) const {
    if (weight == nullptr) {
      visit(row_ptr, adjacent, v, take);
    } else {
      for (int64_t i = row_ptr[v]; i < row_ptr[v + 1]; ++i) {
        if (adjacent[i] != v) take(adjacent[i], weight[i]);
      }
    }
    if (back != nullptr) visit(back_ptr, back, v, take);
  }
  int64_t entries(int64_t v) const {
    return row_ptr[v + 1] - row_ptr[v] + (back != nullptr ? back_ptr[v + 1] - back_ptr[v] : 0);
  }
  int64_t all_entries() const { return row_ptr[count] + (back != nullptr ? back_ptr[count] : 0); }

 private:
  template <class Take>
  static void visit(const int64_t* ptr, const NodeId* list, int64_t v, const Take& take) {
    for (int64_t i = ptr[v]; i < ptr[v + 1]; ++i) {
      if (list[i] != v) take(list[i], uint32_t{1});
    }
  }
};

// Returns whether every edge has its reverse, as often as the edge itself. Compares sums of hashes
// of the edges, so that nothing need be sorted or stored. The result is wrong for about one in 2^64
// graphs.
bool has_all_reverses(const Graph& graph);

// Returns the undirected view of a graph. `symmetric` says that all edges have their reverse; if it
// is false, builds graph.out().
UndirectedView undirected_view(const Graph& graph, bool symmetric);
// Returns a view in which the neighbours of a vertex are only the sources of its in-edges.
UndirectedView in_view(const Graph& graph);

}  // namespace nacre

// Lists the vertices that may draw a vertex: v is drawn by the destinations of its out-edges. Only
// files of this room include this header.
#pragma once

#include <cstdint>
#include <span>

#include "nacre/graph/graph.h"

namespace nacre {

// Describes the edges of one pair of vertices: those by which u draws v, and those by which v draws
// u. The edges are positions in the rows of u and of v. In a symmetric graph the positions of the
// former are not known, but there are as many of them as of the latter.
struct DrawPair {
  NodeId u = 0;
  int64_t edges = 0;            // number of edges v → u, by which u draws v
  int64_t back = 0;             // number of edges u → v, by which v draws u
  const EdgeId* ids = nullptr;  // positions of the edges v → u in the in-CSR; null if they are not
                                // known
  int64_t back_first = 0;       // position of the first edge u → v in the in-CSR
};

// Lists the pairs of every vertex. A graph in which every edge occurs as often as its reverse is
// its own transpose. Other graphs are transposed (Graph::out()), which takes memory while this
// object lives.
class DrawerLists {
 public:
  // `ids` says whether the positions of the edges v → u are needed.
  DrawerLists(const Graph& graph, bool ids);

  // Calls body(pair) for every u ≠ v that may draw v, in the order of u. Before that, it calls
  // ahead(u) for a later u, so that the caller can prefetch what it keeps for u.
  template <class Body, class Ahead = void (*)(NodeId)>
  void each(
      int64_t v, Body&& body, Ahead&& ahead = [](NodeId) {}) const {
    const NodeId* col = graph_.col_idx().data();
    const NodeId* list = out_ == nullptr ? col : out_->dst.data();
    const Array<int64_t>& rows = out_ == nullptr ? graph_.row_ptr() : out_->row_ptr;
    int64_t back = graph_.row_ptr()[v];
    const int64_t back_end = graph_.row_ptr()[v + 1];
    constexpr int64_t distance = 12;
    const int64_t last_row = rows[rows.size() - 1];
    for (int64_t first = rows[v], end = rows[v + 1]; first < end;) {
      if (first + distance < last_row) ahead(list[first + distance]);
      DrawPair pair{list[first]};
      int64_t last = first + 1;
      while (last < end && list[last] == pair.u) ++last;
      pair.edges = last - first;
      if (out_ == nullptr) {
        pair.back = pair.edges;
        pair.back_first = first;
      } else {
        pair.ids = out_->edge_id.data() + first;
        while (back < back_end && col[back] < pair.u) ++back;
        pair.back_first = back;
        while (back < back_end && col[back] == pair.u) ++back;
        pair.back = back - pair.back_first;
      }
      first = last;
      if (pair.u != static_cast<NodeId>(v)) body(pair);
    }
  }

 private:
  const Graph& graph_;
  Graph transposed_;
  const OutCsc* out_ = nullptr;
};

}  // namespace nacre

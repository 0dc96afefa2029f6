#include "nacre/graph/costs.h"

#include <algorithm>

namespace nacre {
namespace {

// Bytes that a sort takes for each key. A key and its position take 8 bytes, and a pass of the sort
// holds them twice: as its input and as its output.
constexpr int64_t kSorting = 16;

}  // namespace

int64_t build_graph_bytes(const GraphCounts& g) {
  // Besides the list of edges, build_graph() holds the order by source and, while it sorts, the
  // destinations in that order.
  const int64_t list = 8 + (g.weighted ? 4 : 0) + (g.typed ? 2 : 0);
  return g.edges * (list + 4 + kSorting) + g.nodes * 16;
}

int64_t out_bytes(const GraphCounts& g) { return (g.nodes + 1) * 8 + g.edges * 12; }

int64_t making_out_bytes(const GraphCounts& g) { return std::max(g.edges * kSorting + g.nodes * 8, out_bytes(g)); }

int64_t make_undirected_bytes(const GraphCounts& g) {
  GraphCounts both = g;
  both.edges *= 2;
  return std::max(making_out_bytes(g), out_bytes(g) + both.bytes());
}

}  // namespace nacre

#include "nacre/graph/transpose.h"

#include <algorithm>

namespace nacre {
namespace {

template <class Offset>
int64_t group(const Graph& graph, const EdgesBySource<Offset>& out) {
  // next[r] is where the next edge of source r goes. In the end it is where the edges of r end,
  // which is where those of r + 1 begin.
  Offset* next = out.offsets + 1;
  std::fill_n(out.offsets, graph.num_src() + 2, Offset{0});
  for (const NodeId v : graph.col_idx()) ++next[int64_t{v} + 1];
  Offset longest = 0, sum = 0;
  for (int64_t r = 1; r <= graph.num_src(); ++r) {
    longest = std::max(longest, next[r]);
    sum += next[r];
    next[r] = sum;
  }
  const int64_t* row_ptr = graph.row_ptr().data();
  const NodeId* col = graph.col_idx().data();
  const auto deal = [&](const auto& put) {
    for (int64_t v = 0; v < graph.num_dst(); ++v) {
      for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; ++e) put(next[col[e]]++, v, e);
    }
  };
  if (out.dst != nullptr && out.edge_id != nullptr) {
    deal([&](Offset at, int64_t v, int64_t e) {
      out.dst[at] = static_cast<NodeId>(v);
      out.edge_id[at] = static_cast<EdgeId>(e);
    });
  } else if (out.dst != nullptr) {
    deal([&](Offset at, int64_t v, int64_t) { out.dst[at] = static_cast<NodeId>(v); });
  } else {
    deal([&](Offset at, int64_t, int64_t e) { out.edge_id[at] = static_cast<EdgeId>(e); });
  }
  return static_cast<int64_t>(longest);
}

}  // namespace

int64_t group_by_source(const Graph& graph, const EdgesBySource<int64_t>& out) { return group(graph, out); }
int64_t group_by_source(const Graph& graph, const EdgesBySource<uint32_t>& out) { return group(graph, out); }

}  // namespace nacre

// Groups edges by source for small graphs, such as the blocks of a batch, which many threads
// prepare side by side. One thread transposes a small graph faster than many. These functions touch
// few bytes and write to memory of the caller.
#pragma once

#include "nacre/graph/graph.h"

namespace nacre {

inline bool is_few_edges(const Graph& graph) { return graph.num_edges() + graph.num_src() < 1 << 22; }

// Says where group_by_source() writes. Offset is an integer type that holds the number of edges.
// `dst` and `edge_id` are as in OutCsc; one of them may be null.
template <class Offset>
struct EdgesBySource {
  Offset* offsets = nullptr;  // num_src + 2 values; the last is not part of the result
  NodeId* dst = nullptr;
  EdgeId* edge_id = nullptr;
};
// Groups the edges and returns the largest number of edges that one source has.
int64_t group_by_source(const Graph& graph, const EdgesBySource<int64_t>& out);
int64_t group_by_source(const Graph& graph, const EdgesBySource<uint32_t>& out);

}  // namespace nacre

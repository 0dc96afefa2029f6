#include "nacre/data/formats/clean.h"

#include <algorithm>
#include <vector>

namespace nacre {

Graph cleaned(const Graph& graph, const Cleaning& cleaning) {
  EdgeList kept;
  kept.num_nodes = graph.num_nodes();
  kept.num_types = graph.num_edge_types();
  std::vector<uint16_t> types;  // types of the kept edges from one source, which are adjacent
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
      const NodeId source = graph.col_idx()[e];
      if (e == graph.row_ptr()[v] || source != graph.col_idx()[e - 1]) types.clear();
      if (cleaning.drop_loops && source == v) continue;
      const uint16_t type = graph.typed() ? graph.edge_type()[e] : 0;
      if (cleaning.merge_duplicates && std::find(types.begin(), types.end(), type) != types.end()) continue;
      types.push_back(type);
      kept.src.push_back(source);
      kept.dst.push_back(static_cast<NodeId>(v));
      if (graph.weighted()) kept.weight.push_back(graph.edge_weight()[e]);
      if (graph.typed()) kept.type.push_back(type);
    }
  }
  return build_graph(std::move(kept), "graph");
}

}  // namespace nacre

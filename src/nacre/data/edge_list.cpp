#include "nacre/data/edge_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/convert/edge_source.h"
#include "nacre/data/node_data.h"

namespace nacre {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Reserves room for all edges, estimated from the bytes read so far, so that vectors do not grow by
// doubling later.
void reserve_rest(EdgeList& edges, const EdgeSource& source) {
  if (source.bytes_done() <= 0 || source.total_bytes() <= source.bytes_done()) return;
  const auto count =
      static_cast<size_t>(static_cast<double>(edges.src.size()) * source.total_bytes() / source.bytes_done() * 1.02);
  edges.src.reserve(count);
  edges.dst.reserve(count);
  if (!edges.weight.empty()) edges.weight.reserve(count);
  if (!edges.type.empty()) edges.type.reserve(count);
}

int64_t count_unused(const Graph& graph) {
  std::vector<char> used(graph.num_nodes(), 0);
  for (const NodeId source : graph.col_idx()) used[source] = 1;
  int64_t unused = 0;
  for (int64_t v = 0; v < graph.num_nodes(); ++v) unused += used[v] == 0 && graph.in_degree(v) == 0 ? 1 : 0;
  return unused;
}

}  // namespace

EdgeList read_edges(EdgeSource& source, std::vector<std::string>& notes) {
  EdgeList edges;
  std::vector<EdgePart> parts;
  for (bool first = true; source.next(parts); first = false) {
    for (const EdgePart& part : parts) {
      append(edges.src, part.src);
      append(edges.dst, part.dst);
      append(edges.weight, part.weight);
      append(edges.type, part.type);
    }
    if (first) reserve_rest(edges, source);
  }
  const std::vector<std::string> said = source.notes();
  notes.insert(notes.end(), said.begin(), said.end());
  for (const uint16_t type : edges.type) edges.num_types = std::max(edges.num_types, type + 1);
  return edges;
}

Dataset read_edge_list(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options) {
  Dataset data;
  EdgeList edges = read_edges(*open_edge_text(file), data.notes);
  const auto count = static_cast<int64_t>(edges.src.size());
  if (count == 0 && options.num_nodes == 0) {
    throw UserError(file->name(),
                    "holds no edges in its " + human_count(file->size()) + " bytes (ends at byte " +
                        std::to_string(file->size()) + ")",
                    "check that it is an edge list; for a graph without edges give --num-nodes");
  }
  edges.num_nodes = options.num_nodes > 0 ? options.num_nodes : largest_id(edges) + 1;
  if (options.num_nodes == 0) check_vertex_count(edges.num_nodes, count, file->name());
  data.graph = graph_from(std::move(edges), file->name());
  data.origins.graph = {file->name(), "edge"};
  if (options.num_nodes == 0) {
    const int64_t unused = count_unused(data.graph);
    if (unused > data.num_nodes() / 2) {
      data.notes.push_back(human_count(unused) + " of " + human_count(data.num_nodes()) +
                           " node ids are not used by any edge: --format snap renumbers them");
    }
  }
  return data;
}

}  // namespace nacre

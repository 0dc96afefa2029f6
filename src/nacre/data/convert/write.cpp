#include "nacre/data/convert/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/convert/fits.h"
#include "nacre/data/convert/notes.h"
#include "nacre/data/convert/stream.h"
#include "nacre/data/native.h"

namespace nacre {
namespace {

Array<NodeId> renamed(const Array<NodeId>& ids, const Array<NodeId>& new_id) {
  std::vector<NodeId> out(ids.begin(), ids.end());
  for (NodeId& v : out) v = new_id[v];
  return out;
}

template <class T>
Array<T> moved(const Array<T>& values, const Array<NodeId>& order) {
  if (values.empty()) return {};
  std::vector<T> out;
  out.reserve(order.size());
  for (const NodeId v : order) out.push_back(values[v]);
  return out;
}

Tensor moved_rows(const Tensor& from, const Array<NodeId>& order) {
  if (!from.defined()) return {};
  Tensor to(from.dtype(), from.shape());
  const int64_t columns = from.shape()[1];
  for (int64_t i = 0; i < order.size(); ++i) {
    const uint8_t* row = from.data<uint8_t>() + order[i] * columns;
    std::copy(row, row + columns, to.data<uint8_t>() + i * columns);
  }
  return to;
}

HeldOutEdges renamed(const HeldOutEdges& edges, const Array<NodeId>& new_id) {
  return {renamed(edges.src, new_id), renamed(edges.dst, new_id), edges.type};
}

// Returns the vertices in the same order within every kind, one kind after the other.
Array<NodeId> by_kind(const Array<NodeId>& order, const std::vector<int64_t>& offsets) {
  if (offsets.size() < 3) return order;
  const auto kind = [&](NodeId v) {
    return std::upper_bound(offsets.begin(), offsets.end(), static_cast<int64_t>(v)) - offsets.begin();
  };
  std::vector<NodeId> result(order.begin(), order.end());
  std::stable_sort(result.begin(), result.end(), [&](NodeId a, NodeId b) { return kind(a) < kind(b); });
  return result;
}

void add_loops(Dataset& data) {
  if (!data.relations.empty()) {
    throw UserError("--self-loops", "this graph has named relations, and a loop belongs to none of them",
                    "leave the option out");
  }
  const int64_t before = data.graph.num_edges();
  data.graph = add_self_loops(data.graph);
  data.notes.push_back(loops_note(data.graph.num_edges() - before));
}

void check_memory(const Dataset& data, const ConvertOptions& o) {
  const int64_t need = reorder_bytes(data.graph, o.reorder);
  if (need <= o.memory) return;
  throw UserError("--reorder",
                  fmt::format("{} holds the graph in memory and needs about {}, more than the {} of --memory",
                              reorder_name(o.reorder), human_bytes(static_cast<double>(need)),
                              human_bytes(static_cast<double>(o.memory))),
                  "give more with --memory, or use --reorder none");
}

}  // namespace

Dataset reordered(const Dataset& data, const Array<NodeId>& order) {
  const Array<NodeId> new_id = inverse_order(order);
  Dataset out = data;
  out.graph = permuted(data.graph, order, new_id);
  out.labels = moved(data.labels, order);
  out.targets = moved_rows(data.targets, order);
  out.splits = {renamed(data.splits.train, new_id), renamed(data.splits.val, new_id),
                renamed(data.splits.test, new_id)};
  out.val_edges = renamed(data.val_edges, new_id);
  out.test_edges = renamed(data.test_edges, new_id);
  if (!data.node_names.empty()) {
    for (int64_t i = 0; i < order.size(); ++i) out.node_names[i] = data.node_names[order[i]];
  } else if (!data.original_ids.empty()) {
    out.original_ids = moved(data.original_ids, order);
  } else {
    // The original id of a vertex is its number within its kind.
    std::vector<int64_t> ids(order.begin(), order.end());
    for (size_t k = 1; k < data.node_types.size(); ++k) {
      for (int64_t i = data.node_offsets[k]; i < data.node_offsets[k + 1]; ++i) ids[i] -= data.node_offsets[k];
    }
    out.original_ids = std::move(ids);
  }
  return out;
}

ConvertReport write_converted(Dataset data, const std::string& path, const std::string& conversion,
                              const ConvertOptions& o) {
  if (o.self_loops) add_loops(data);
  NativeOptions n{.feature_type = o.feature_type, .conversion = conversion, .where = data.name};
  if (o.reorder != Reorder::none) {
    check_memory(data, o);
    n.order = by_kind(vertex_order(data.graph, o.reorder), data.node_offsets);
    data = reordered(data, n.order);
    data.notes.push_back("nodes were reordered (" + std::string(reorder_name(o.reorder)) +
                         "); predictions come out by original id");
  }
  const bool features = data.features.defined() || !data.type_features.empty();
  add_type_note(o, features, data.notes);
  write_native(data, path, n);
  ConvertReport report;
  report.vertices = data.num_nodes();
  report.edges = data.graph.num_edges();
  report.notes = data.notes;
  return report;
}

ConvertReport convert_dataset(const std::string& source, const std::string& path, const ConvertOptions& options) {
  if (options.memory < kLeastConvertMemory) {
    throw UserError("--memory", human_bytes(static_cast<double>(options.memory)) + " is too little to work in",
                    "give at least " + human_bytes(static_cast<double>(kLeastConvertMemory)));
  }
  if (options.load.num_nodes < 0)
    throw UserError("--num-nodes", "is negative", "leave it out or give the number of nodes");
  if (const auto streamed = stream_convert(source, path, options)) return *streamed;
  check_whole(source, options);
  return write_converted(load_dataset(source, options.load), path, conversion_json(source, options), options);
}

}  // namespace nacre

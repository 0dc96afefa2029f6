#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "nacre/data/native.h"
#include "nacre/data/native_writer.h"

namespace nacre {
namespace {

using native::Writer;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (std::string line : lines) {
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += line + "\n";
  }
  return text;
}

void add_features(Writer& writer, const std::string& name, const Tensor& features, const NativeOptions& options) {
  const bool ordered = !options.order.empty();
  native::OpenSection section = writer.open(name, options.feature_type, features.shape());
  const native::RowSource rows = ordered ? native::rows_in_order(features, options.order) : native::rows_of(features);
  // The values have been validated when they were read, as far as was asked. Only a narrower type
  // can make them infinite.
  append_rows(writer, section, rows, {.where = options.where, .stored = options.feature_type, .check_finite = false});
  writer.close(section);
}

void add_held_out(Writer& writer, const std::string& part, const HeldOutEdges& edges) {
  if (edges.size() == 0) return;
  writer.add(part + "_src", edges.src);
  writer.add(part + "_dst", edges.dst);
  if (!edges.type.empty()) writer.add(part + "_type", edges.type);
}

std::string kinds_json(const Dataset& data) {
  nlohmann::json relations = nlohmann::json::array();
  for (const Relation& r : data.relations) relations.push_back({r.src_type, r.name, r.dst_type});
  const nlohmann::json kinds = {
      {"types", data.node_types}, {"offsets", data.node_offsets}, {"relations", std::move(relations)}};
  return kinds.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Returns the part of an order that belongs to one kind of vertices, with numbers within the kind.
Array<NodeId> order_of_kind(const Dataset& data, size_t kind, const Array<NodeId>& order) {
  if (order.empty()) return {};
  const int64_t begin = data.node_offsets[kind];
  std::vector<NodeId> own(order.begin() + begin, order.begin() + data.node_offsets[kind + 1]);
  for (NodeId& v : own) v -= static_cast<NodeId>(begin);
  return own;
}

}  // namespace

void native::write_graph(Writer& writer, const Graph& graph) {
  NACRE_CHECK(graph.num_src() == graph.num_dst(), "only whole graphs can be written, and this is a block");
  const GraphArrays& arrays = graph.arrays();
  writer.add("row_ptr", arrays.row_ptr);
  writer.add("col_idx", arrays.col_idx);
  if (!arrays.edge_weight.empty()) writer.add("edge_weight", arrays.edge_weight);
  if (!arrays.edge_type.empty()) writer.add("edge_type", arrays.edge_type);
}

void native::write_features(Writer& writer, const Dataset& dataset, const NativeOptions& options) {
  if (dataset.features.defined()) add_features(writer, "features", dataset.features, options);
  for (size_t k = 0; k < dataset.type_features.size(); ++k) {
    const Tensor& features = dataset.type_features[k];
    if (!features.defined()) continue;
    NativeOptions own = options;
    own.order = order_of_kind(dataset, k, options.order);
    add_features(writer, "features." + std::to_string(k), features, own);
  }
}

void native::write_rest(Writer& writer, const Dataset& data, const NativeOptions& options) {
  if (!data.labels.empty()) writer.add("labels", data.labels);
  if (data.targets.defined()) writer.add("targets", data.targets.data<uint8_t>(), data.targets.shape());
  writer.add("train", data.splits.train);
  writer.add("val", data.splits.val);
  writer.add("test", data.splits.test);
  add_held_out(writer, "val", data.val_edges);
  add_held_out(writer, "test", data.test_edges);
  if (!data.original_ids.empty()) writer.add("original_ids", data.original_ids);
  if (!data.node_names.empty()) writer.add("node_names", joined(data.node_names));
  if (!data.class_names.empty()) writer.add("class_names", joined(data.class_names));
  if (!data.node_types.empty() || !data.relations.empty()) writer.add("kinds", kinds_json(data));
  const int64_t scalars[3] = {options.vertices > 0 ? options.vertices : data.num_nodes(),
                              options.edge_types > 0 ? options.edge_types : data.graph.num_edge_types(),
                              data.num_classes};
  writer.add("scalars", scalars, {3});
  writer.add("name", data.name);
  writer.add("notes", joined(data.notes));
  if (!options.conversion.empty()) writer.add("conversion", options.conversion);
}

void write_native(const Dataset& dataset, const std::string& path, const NativeOptions& options) {
  PendingFile file(path);
  Writer writer([&](int64_t offset, const void* data, int64_t bytes) { file.write_at(offset, data, bytes); });
  native::write_graph(writer, dataset.graph);
  native::write_features(writer, dataset, options);
  native::write_rest(writer, dataset, options);
  writer.finish();
  file.commit();
}

}  // namespace nacre

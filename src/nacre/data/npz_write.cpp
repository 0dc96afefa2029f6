#include "nacre/data/npz_write.h"

#include "nacre/data/npz.h"
#include "nacre/data/npz_write_arrays.h"

namespace nacre {
namespace {

// Writes kinds of vertices, relations between them and features of each kind.
void write_kinds(const Dataset& d, NpzWriter& out) {
  if (d.node_types.empty()) return;
  out.add_words("node_types", d.node_types);
  out.add<int64_t>("node_offsets", {static_cast<int64_t>(d.node_offsets.size())},
                   [&](int64_t i) { return d.node_offsets[i]; });
  std::vector<std::string> names;
  for (const Relation& r : d.relations) names.push_back(r.name);
  const auto count = static_cast<int64_t>(names.size());
  out.add_words("relation_name", names);
  out.add<int64_t>("relation_src", {count}, [&](int64_t i) { return d.relations[i].src_type; });
  out.add<int64_t>("relation_dst", {count}, [&](int64_t i) { return d.relations[i].dst_type; });
  for (size_t k = 0; k < d.type_features.size(); ++k) {
    const Tensor& x = d.type_features[k];
    if (x.defined())
      out.add<float>(kind_key(d.node_types[k]), x.shape(), [&](int64_t i) { return x.data<float>()[i]; });
  }
}

void write_held_out(const std::string& part, const HeldOutEdges& edges, NpzWriter& out) {
  const int64_t count = edges.size();
  if (count == 0) return;
  out.add<int64_t>(part + "_edge_index", {2, count},
                   [&](int64_t i) { return i < count ? edges.src[i] : edges.dst[i - count]; });
  if (!edges.type.empty()) out.add<int64_t>(part + "_edge_type", {count}, [&](int64_t i) { return edges.type[i]; });
}

}  // namespace

void write_npz(const Dataset& d, const std::string& path) {
  NpzWriter out(path);
  const Graph& g = d.graph;
  const int64_t edges = g.num_edges();
  const Array<NodeId>& dst = g.edge_dst();
  out.add<int64_t>("num_nodes", {}, [&](int64_t) { return d.num_nodes(); });
  out.add<int64_t>("edge_index", {2, edges}, [&](int64_t i) { return i < edges ? g.col_idx()[i] : dst[i - edges]; });
  if (g.weighted()) out.add<float>("edge_weight", {edges}, [&](int64_t i) { return g.edge_weight()[i]; });
  if (g.typed()) out.add<int64_t>("edge_type", {edges}, [&](int64_t i) { return g.edge_type()[i]; });
  if (d.features.defined()) {
    out.add<float>("x", d.features.shape(), [x = d.features.data<float>()](int64_t i) { return x[i]; });
  }
  if (d.multilabel()) {
    out.add<uint8_t>("y", d.targets.shape(), [t = d.targets.data<uint8_t>()](int64_t i) { return t[i]; });
  } else if (!d.labels.empty()) {
    out.add<int64_t>("y", {d.num_nodes()}, [&](int64_t i) { return d.labels[i]; });
    out.add<int64_t>("num_classes", {}, [&](int64_t) { return d.num_classes; });
  }
  const auto split = [&](const char* key, const Array<NodeId>& nodes) {
    if (!nodes.empty()) out.add<int64_t>(key, {nodes.size()}, [&](int64_t i) { return nodes[i]; });
  };
  write_kinds(d, out);
  write_held_out("val", d.val_edges, out);
  write_held_out("test", d.test_edges, out);
  split("train_idx", d.splits.train);
  split("val_idx", d.splits.val);
  split("test_idx", d.splits.test);
  out.finish();
}

}  // namespace nacre

#include "nacre/data/npz_write.h"

#include "nacre/data/npz_write_arrays.h"

namespace nacre {

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
  }
  const auto split = [&](const char* key, const Array<NodeId>& nodes) {
    if (!nodes.empty()) out.add<int64_t>(key, {nodes.size()}, [&](int64_t i) { return nodes[i]; });
  };
  split("train_idx", d.splits.train);
  split("val_idx", d.splits.val);
  split("test_idx", d.splits.test);
  out.finish();
}

}  // namespace nacre

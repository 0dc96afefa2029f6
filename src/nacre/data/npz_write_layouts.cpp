#include "nacre/data/npz_write_layouts.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "nacre/data/npz_write_arrays.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

// A folder that is written under a temporary name and gets its real name in commit().
class PendingFolder {
 public:
  explicit PendingFolder(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
    while (path_.size() > 1 && path_.ends_with("/")) path_.pop_back();
    temporary_ = path_ + ".tmp";
    if (fs::exists(path_)) throw UserError(path_, "exists already", "name a folder that does not");
    make("");
  }
  ~PendingFolder() {
    std::error_code error;
    if (!done_) fs::remove_all(temporary_, error);
  }
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  std::string at(const std::string& name) const { return temporary_ + "/" + name; }
  void make(const std::string& inside) const {
    std::error_code error;
    fs::create_directories(inside.empty() ? temporary_ : at(inside), error);
    if (error) throw UserError(path_, "cannot be written: " + error.message(), "choose a folder you can write to");
  }
  void commit() {
    std::error_code error;
    fs::rename(temporary_, path_, error);
    if (error) throw RuntimeError(path_, "cannot be named: " + error.message());
    done_ = true;
  }

 private:
  std::string path_;
  std::string temporary_;
  bool done_ = false;
};

// Writes one id per line.
void write_ids_gz(const std::string& path, const Array<NodeId>& ids) {
  const gzFile file = gzopen(path.c_str(), "wb6");
  if (file == nullptr) throw RuntimeError(path, "cannot be written");
  bool good = true;
  std::string lines;
  const auto flush = [&] {
    good = good && gzwrite(file, lines.data(), static_cast<unsigned>(lines.size())) == static_cast<int>(lines.size());
    lines.clear();
  };
  for (const NodeId v : ids) {
    lines += std::to_string(v) + "\n";
    if (lines.size() > (1 << 20)) flush();
  }
  if (!lines.empty()) flush();
  if (gzclose(file) != Z_OK || !good) throw RuntimeError(path, "cannot be written to the end");
}

void refuse_kinds(const Dataset& data, const std::string& layout) {
  if (!data.heterogeneous() && data.type_features.empty()) return;
  throw UserError("export", "several kinds of nodes do not fit the layout " + layout,
                  "keep the .nacre file, or export edges and features as npz");
}

void write_ogb_labels(const Dataset& data, const std::string& path) {
  NpzWriter out(path);
  if (data.multilabel()) {
    const auto* y = data.targets.data<uint8_t>();
    out.add<int64_t>("node_label", data.targets.shape(), [&](int64_t i) { return y[i]; });
  } else if (std::find(data.labels.begin(), data.labels.end(), -1) != data.labels.end()) {
    // In this layout, NaN means no label.
    const auto label = [&](int64_t i) {
      return data.labels[i] < 0 ? std::nanf("") : static_cast<float>(data.labels[i]);
    };
    out.add<float>("node_label", {data.num_nodes(), 1}, label);
  } else {
    out.add<int64_t>("node_label", {data.num_nodes(), 1}, [&](int64_t i) { return data.labels[i]; });
  }
  out.finish();
}

// Writes a SciPy CSR matrix whose rows are sources and whose columns are destinations. It holds the
// edges between vertices for which `keep` is true.
template <class Keep>
void write_adjacency(const Graph& graph, const std::string& path, const Keep& keep) {
  const OutCsc& out_edges = graph.out();
  std::vector<int64_t> kept;  // positions in out_edges
  std::vector<int64_t> row_ptr = {0};
  for (int64_t v = 0; v < graph.num_nodes(); ++v) {
    for (int64_t i = out_edges.row_ptr[v]; i < out_edges.row_ptr[v + 1]; ++i) {
      if (keep(static_cast<NodeId>(v)) && keep(out_edges.dst[i])) kept.push_back(i);
    }
    row_ptr.push_back(static_cast<int64_t>(kept.size()));
  }
  const auto count = static_cast<int64_t>(kept.size());
  NpzWriter out(path);
  out.add<int64_t>("indices", {count}, [&](int64_t i) { return out_edges.dst[kept[i]]; });
  out.add<int64_t>("indptr", {graph.num_nodes() + 1}, [&](int64_t i) { return row_ptr[i]; });
  out.add_word("format", "csr");
  out.add<int64_t>("shape", {2}, [&](int64_t) { return graph.num_nodes(); });
  out.add<float>("data", {count},
                 [&](int64_t i) { return graph.weighted() ? graph.edge_weight()[out_edges.edge_id[kept[i]]] : 1.0F; });
  out.finish();
}

std::string class_text(const Dataset& data, int64_t v) {
  if (!data.multilabel()) return std::to_string(data.labels[v]);
  const uint8_t* row = data.targets.data<uint8_t>() + v * data.num_classes;
  return fmt::format("[{}]", fmt::join(row, row + data.num_classes, ", "));
}

void write_class_map(const Dataset& data, const std::string& path) {
  PendingFile file(path);
  std::string text = "{";
  bool first = true;
  for (int64_t v = 0; v < data.num_nodes(); ++v) {
    if (!data.multilabel() && data.labels[v] < 0) continue;
    text += fmt::format("{}\"{}\": {}", std::exchange(first, false) ? "" : ", ", v, class_text(data, v));
    if (text.size() > (1 << 20)) {
      file.append(text);
      text.clear();
    }
  }
  file.append(text + "}\n");
  file.commit();
}

void write_roles(const Splits& splits, const std::string& path) {
  const auto ids = [](const Array<NodeId>& nodes) {
    return fmt::format("[{}]", fmt::join(nodes.begin(), nodes.end(), ", "));
  };
  write_file(path, fmt::format("{{\"tr\": {}, \"va\": {}, \"te\": {}}}\n", ids(splits.train), ids(splits.val),
                               ids(splits.test)));
}

}  // namespace

void write_ogb(const Dataset& data, const std::string& path) {
  refuse_kinds(data, "ogb");
  PendingFolder folder(path);
  folder.make("raw");
  folder.make("split/nacre");
  const Graph& graph = data.graph;
  const int64_t edges = graph.num_edges();
  const Array<NodeId>& dst = graph.edge_dst();
  NpzWriter out(folder.at("raw/data.npz"));
  out.add<int64_t>("edge_index", {2, edges},
                   [&](int64_t i) { return i < edges ? graph.col_idx()[i] : dst[i - edges]; });
  out.add<int64_t>("num_nodes_list", {1}, [&](int64_t) { return data.num_nodes(); });
  out.add<int64_t>("num_edges_list", {1}, [&](int64_t) { return edges; });
  if (graph.weighted()) out.add<float>("edge_feat", {edges, 1}, [&](int64_t i) { return graph.edge_weight()[i]; });
  if (graph.typed()) out.add<int64_t>("edge_reltype", {edges, 1}, [&](int64_t i) { return graph.edge_type()[i]; });
  if (data.features.defined()) {
    out.add<float>("node_feat", data.features.shape(), [x = data.features.data<float>()](int64_t i) { return x[i]; });
  }
  out.finish();
  if (data.multilabel() || !data.labels.empty()) write_ogb_labels(data, folder.at("raw/node-label.npz"));
  write_ids_gz(folder.at("split/nacre/train.csv.gz"), data.splits.train);
  write_ids_gz(folder.at("split/nacre/valid.csv.gz"), data.splits.val);
  write_ids_gz(folder.at("split/nacre/test.csv.gz"), data.splits.test);
  write_file(folder.at("RELEASE_v1.txt"), "");
  folder.commit();
}

void write_saint(const Dataset& data, const std::string& path) {
  refuse_kinds(data, "saint");
  if (data.graph.typed()) {
    throw UserError("export", "edges of several types do not fit the layout saint", "export as npz or ogb");
  }
  if (!data.features.defined() || (!data.multilabel() && data.labels.empty())) {
    throw UserError("export", "the layout saint needs features and labels", "export as npz or ogb");
  }
  PendingFolder folder(path);
  std::vector<char> trained(data.num_nodes(), 0);
  for (const NodeId v : data.splits.train) trained[v] = 1;
  write_adjacency(data.graph, folder.at("adj_full.npz"), [](NodeId) { return true; });
  write_adjacency(data.graph, folder.at("adj_train.npz"), [&](NodeId v) { return trained[v] != 0; });
  write_npy<float>(folder.at("feats.npy"), data.features.shape(),
                   [x = data.features.data<float>()](int64_t i) { return x[i]; });
  write_class_map(data, folder.at("class_map.json"));
  write_roles(data.splits, folder.at("role.json"));
  folder.commit();
}

}  // namespace nacre

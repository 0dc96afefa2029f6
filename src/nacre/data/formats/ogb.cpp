// OGB node property prediction with one kind of vertices: raw/ as csv.gz (edge, num-node-list,
// node-feat, node-label) or as data.npz with node-label.npz; split/NAME/{train,valid,test} as
// csv.gz or as files of PyTorch.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/ogb_parts.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npz.h"

namespace nacre {
namespace {

constexpr const char* kLabels = "raw/node-label.csv";

// Holds the content of raw/, in either form.
struct Raw {
  EdgeInput edges;
  int64_t nodes = 0;
  std::string where_nodes;
  FeatureInput features;
  bool has_features = false;
  std::vector<std::string> notes;
};

Raw open_csv(const DataSource& source) {
  Raw raw;
  raw.edges = text_edges(source.open_text("raw/edge.csv"));
  raw.nodes = ogb_count(source, "raw/num-node-list.csv");
  raw.where_nodes = source.at(source.text("raw/num-node-list.csv")) + ":1";
  if (!source.text("raw/num-edge-list.csv").empty()) raw.edges.stated = ogb_count(source, "raw/num-edge-list.csv");
  raw.has_features = !source.text("raw/node-feat.csv").empty();
  if (raw.has_features) raw.features = text_features(source.open_text("raw/node-feat.csv"));
  ogb_note_unused(source, "raw",
                  {"edge.csv", "num-node-list.csv", "num-edge-list.csv", "node-feat.csv", "node-label.csv"}, raw.notes);
  return raw;
}

Raw open_binary(const DataSource& source) {
  Raw raw;
  const NpzFile npz(source.open("raw/data.npz"));
  raw.edges = npz_edges(npz, "edge_index", PairLayout::two_rows);
  raw.nodes = npz.open("num_nodes_list").scalar_i64();
  raw.where_nodes = npz.name() + "[num_nodes_list] entry 0";
  if (npz.has("num_edges_list")) raw.edges.stated = npz.open("num_edges_list").scalar_i64();
  raw.has_features = npz.has("node_feat");
  if (raw.has_features) raw.features = npz_features(npz, "node_feat");
  std::string unused;
  for (const std::string& key : npz.keys()) {
    const bool known = key == "edge_index" || key == "num_nodes_list" || key == "num_edges_list" || key == "node_feat";
    if (!known) unused += (unused.empty() ? "" : ", ") + key;
  }
  if (!unused.empty()) raw.notes.push_back("not used: " + unused);
  return raw;
}

Dataset read_labels(const DataSource& source, bool binary) {
  Dataset labels;
  if (binary) {
    if (source.has("raw/node-label.npz"))
      labels_from(NpzFile(source.open("raw/node-label.npz")).open("node_label"), labels);
  } else if (!source.text(kLabels).empty()) {
    labels_from_text(source.open_text(kLabels), labels);
  }
  return labels;
}

// Returns whether a set stores each edge once, according to OGB's own list of sets.
bool stored_once(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  if (name.starts_with("ogbn-")) name.erase(0, 5);
  if (name.ends_with("-pyg")) name.resize(name.size() - 4);
  return name == "products" || name == "proteins";
}

std::string recognise_ogb(const DataSource& source) {
  if (!source.text("raw/edge.csv").empty()) return "holds raw/edge.csv";
  return source.has("raw/data.npz") ? "holds raw/data.npz" : "";
}

DatasetBuilder open_ogb(const DataSource& source, const std::string& variant, const LoadOptions&) {
  const bool binary = source.has("raw/data.npz");
  Raw raw = binary ? open_binary(source) : open_csv(source);
  check_vertex_count(raw.nodes, std::max(raw.edges.at_most, raw.features.rows), raw.where_nodes);
  DatasetBuilder builder(source.path());
  builder.data.notes = std::move(raw.notes);
  builder.data.origins.graph = {raw.edges.where, "edge"};
  if (raw.nodes <= 0) throw UserError(raw.where_nodes, "states that there are " + std::to_string(raw.nodes) + " nodes");
  const int type = builder.add_type("node", raw.nodes);
  raw.edges.both_ways = stored_once(source.name());
  builder.data.notes.push_back(raw.edges.both_ways
                                   ? "the reverse of every edge was added, as OGB does for " + source.name()
                                   : "edges are directed as stored; --undirected adds their reverse");
  builder.add_edges({type, "edge", type}, std::move(raw.edges));
  if (raw.has_features) builder.set_features(type, std::move(raw.features));
  const std::string split = ogb_split_folder(source, variant);
  builder.later(type, [=](DatasetBuilder& b) {
    const Dataset labels = read_labels(source, binary);
    if (labels.multilabel() || !labels.labels.empty()) b.set_labels(type, labels);
    if (!split.empty()) ogb_read_splits(source, split, type, b);
  });
  return builder;
}

}  // namespace

std::vector<Format> formats_in_ogb() {
  return {
      {"ogb", "OGB node property, csv.gz or npz", recognise_ogb, load_opened<open_ogb>, "the split", opened<open_ogb>}};
}

}  // namespace nacre

// OGB node property prediction, one kind of vertex: raw/ as csv.gz (edge, num-node-list, node-feat, node-label) or as
// data.npz with node-label.npz; split/NAME/{train,valid,test}.csv.gz.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/edge_list.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/ogb_parts.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npy_edges.h"
#include "nacre/data/npz.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

// What raw/ holds, in either form.
struct Raw {
  EdgeList edges;
  int64_t nodes = 0;
  int64_t stated_edges = -1;
  Tensor features;
  Dataset labels;  // labels or targets, num_classes
  std::vector<std::string> notes;
};

Raw read_csv(const Place& place) {
  Raw raw;
  raw.edges = read_edge_text(place.open_text("raw/edge.csv"), raw.notes);
  raw.nodes = ogb_count(place, "raw/num-node-list.csv");
  if (!place.text("raw/num-edge-list.csv").empty()) raw.stated_edges = ogb_count(place, "raw/num-edge-list.csv");
  if (!place.text("raw/node-feat.csv").empty())
    raw.features = read_text_matrix(place.open_text("raw/node-feat.csv"), NanAs::error).tensor();
  if (!place.text("raw/node-label.csv").empty()) labels_from_text(place.open_text("raw/node-label.csv"), raw.labels);
  ogb_note_unused(place, "raw",
                  {"edge.csv", "num-node-list.csv", "num-edge-list.csv", "node-feat.csv", "node-label.csv"}, raw.notes);
  return raw;
}

Raw read_binary(const Place& place) {
  Raw raw;
  const NpzFile npz(place.open("raw/data.npz"));
  raw.edges = pairs_from(npz.open("edge_index"), PairLayout::two_rows, raw.notes);
  raw.nodes = npz.open("num_nodes_list").scalar_i64();
  if (npz.has("num_edges_list")) raw.stated_edges = npz.open("num_edges_list").scalar_i64();
  if (npz.has("node_feat")) raw.features = features_from(npz.open("node_feat"));
  std::string unused;
  for (const std::string& key : npz.keys()) {
    const bool known = key == "edge_index" || key == "num_nodes_list" || key == "num_edges_list" || key == "node_feat";
    if (!known) unused += (unused.empty() ? "" : ", ") + key;
  }
  if (!unused.empty()) raw.notes.push_back("not used: " + unused);
  if (place.has("raw/node-label.npz"))
    labels_from(NpzFile(place.open("raw/node-label.npz")).open("node_label"), raw.labels);
  return raw;
}

// OGB's own list of sets says which store each edge once.
bool stored_once(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  if (name.starts_with("ogbn-")) name.erase(0, 5);
  if (name.ends_with("-pyg")) name.resize(name.size() - 4);
  return name == "products" || name == "proteins";
}

void add_inverse(EdgeList& edges) {
  const size_t count = edges.src.size();
  edges.src.insert(edges.src.end(), edges.dst.begin(), edges.dst.end());
  edges.dst.insert(edges.dst.end(), edges.src.begin(), edges.src.begin() + static_cast<int64_t>(count));
}

}  // namespace

std::string recognise_ogb(const Place& place) {
  if (!place.text("raw/edge.csv").empty()) return "holds raw/edge.csv";
  return place.has("raw/data.npz") ? "holds raw/data.npz" : "";
}

Dataset load_ogb(const Place& place, const std::string& variant, const LoadOptions&) {
  Raw raw = place.has("raw/data.npz") ? read_binary(place) : read_csv(place);
  const auto count = static_cast<int64_t>(raw.edges.src.size());
  if (raw.stated_edges >= 0 && raw.stated_edges != count) {
    throw UserError(place.path(), "holds " + human_count(count) + " edges, but states " + human_count(raw.stated_edges),
                    "the set is incomplete: fetch it again");
  }
  raw.edges.weight.clear();
  const int64_t rows = raw.features.defined() ? raw.features.rows() : raw.labels.labels.size();
  check_vertex_count(raw.nodes, std::max(rows, count), place.path());
  DatasetBuilder builder(place.path());
  builder.data.notes = std::move(raw.notes);
  const int type = builder.add_type("node", raw.nodes);
  if (stored_once(place.name())) {
    add_inverse(raw.edges);
    builder.data.notes.push_back("the reverse of every edge was added, as OGB does for " + place.name());
  } else {
    builder.data.notes.emplace_back("edges are directed as stored; --undirected adds their reverse");
  }
  builder.add_edges({type, "edge", type}, std::move(raw.edges), place.path());
  if (raw.features.defined()) builder.set_features(type, std::move(raw.features));
  if (raw.labels.multilabel() || !raw.labels.labels.empty()) builder.set_labels(type, raw.labels);
  const std::string split = ogb_split_folder(place, variant);
  if (!split.empty()) ogb_read_splits(place, split, type, builder);
  return builder.finish();
}

}  // namespace nacre

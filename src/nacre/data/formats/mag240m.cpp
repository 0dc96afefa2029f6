// MAG240M: processed/paper/{node_feat,node_label}.npy, processed/KIND___RELATION___KIND/edge_index.npy [2, E], meta.pt
// with the numbers of vertices and split_dict.pt. Labels of the test papers are hidden: those are left out of the
// split.
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lsc.h"
#include "nacre/data/formats/torch_file.h"
#include "nacre/data/node_data.h"

namespace nacre {
namespace {

constexpr const char* kFeatures = "processed/paper/node_feat.npy";
constexpr const char* kLabels = "processed/paper/node_label.npy";

// The kinds in the order of OGB's documentation, then whatever else the relations name.
std::vector<std::string> kinds_of(const std::vector<LargeRelation>& relations) {
  std::vector<std::string> kinds = {"paper"};
  const auto add = [&](const std::string& kind) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  };
  for (const char* known : {"author", "institution"}) {
    for (const LargeRelation& r : relations) {
      if (r.name.src == known || r.name.dst == known) add(known);
    }
  }
  for (const LargeRelation& r : relations) {
    add(r.name.src);
    add(r.name.dst);
  }
  return kinds;
}

void read_splits(const Place& place, int paper, DatasetBuilder& builder) {
  if (!place.has("split_dict.pt")) {
    builder.data.notes.emplace_back("split_dict.pt is missing: no split was read");
    return;
  }
  const TorchFile file(place.open("split_dict.pt"));
  Splits& splits = builder.data.splits;
  const auto part = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      if (auto ids = file.numbers(key); ids.has_value()) return *ids;
    }
    return std::vector<int64_t>();
  };
  splits.train = builder.split(paper, part({"train"}), file.name());
  splits.val = builder.split(paper, part({"valid", "val"}), file.name());
  const Array<NodeId> test = builder.split(paper, part({"test", "test-whole", "test-dev"}), file.name());
  std::vector<NodeId> labelled;
  for (const NodeId v : test) {
    if (!builder.data.labels.empty() && builder.data.labels[v] >= 0) labelled.push_back(v);
  }
  if (static_cast<int64_t>(labelled.size()) != test.size()) {
    builder.data.notes.push_back(human_count(test.size() - static_cast<int64_t>(labelled.size())) +
                                 " test papers have no public label and were left out of the test split");
  }
  splits.test = std::move(labelled);
}

}  // namespace

std::string recognise_mag240m(const Place& place) {
  if (!place.has(kFeatures)) return "";
  for (const std::string& folder : place.folders("processed")) {
    if (is_relation(folder, "___")) return "holds processed/" + folder;
  }
  return "";
}

Dataset load_mag240m(const Place& place, const std::string&, const LoadOptions&) {
  std::vector<LargeRelation> relations = read_large_relations(place, "processed", "___", PairLayout::two_rows);
  NpyReader features(place.open(kFeatures));
  check_conversion(features);
  if (features.shape().size() != 2) throw UserError(features.where(), "is no matrix");
  DatasetBuilder builder(place.path());
  int64_t edges = 0;
  for (const LargeRelation& r : relations) edges += static_cast<int64_t>(r.edges.src.size());
  int64_t nodes = 0;
  for (const std::string& kind : kinds_of(relations)) {
    int64_t count = kind == "paper" ? features.shape()[0] : count_in_edges(relations, kind);
    if (kind != "paper" && place.has("meta.pt")) {
      const auto stated = TorchFile(place.open("meta.pt")).integer(kind);
      count = std::max(count, stated.value_or(0));
    }
    builder.add_type(kind, count);
    nodes += count;
  }
  check_vertex_count(nodes, edges + features.shape()[0], place.path());
  for (LargeRelation& r : relations) {
    builder.add_edges({builder.type(r.name.src, r.file), r.name.name, builder.type(r.name.dst, r.file)},
                      std::move(r.edges), place.at(r.file));
  }
  const int paper = builder.find_type("paper");
  builder.set_features(paper, features_from(std::move(features)));
  if (place.has(kLabels)) {
    Dataset part;
    labels_from(NpyReader(place.open(kLabels)), part);
    builder.set_labels(paper, part);
  }
  read_splits(place, paper, builder);
  builder.data.notes.emplace_back("relations are directed as stored; --undirected adds a reverse of each");
  return builder.finish();
}

}  // namespace nacre

// MAG240M: processed/paper/{node_feat,node_label}.npy,
// processed/KIND___RELATION___KIND/edge_index.npy [2, E], meta.pt with the numbers of vertices, and
// split_dict.pt. Labels of the test papers are not public, so these papers are left out of the
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

int64_t edges_of(const std::vector<LargeRelation>& relations, const std::string& kind) {
  int64_t edges = 0;
  for (const LargeRelation& r : relations) edges += r.name.src == kind || r.name.dst == kind ? r.edges.at_most : 0;
  return edges;
}

// Returns the kinds in the order of OGB's documentation, then all others that the relations name.
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

void read_splits(const DataSource& source, int paper, DatasetBuilder& builder) {
  if (!source.has("split_dict.pt")) {
    builder.data.notes.emplace_back("split_dict.pt is missing: no split was read");
    return;
  }
  const TorchFile file(source.open("split_dict.pt"));
  using Part = DatasetBuilder::Part;
  const auto read = [&](Part part, std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      const auto ids = file.numbers(key);
      if (!ids.has_value()) continue;
      builder.set_split(part, paper, *ids, {file.name() + "[" + key + "]", "entry"});
      return;
    }
  };
  read(Part::train, {"train"});
  read(Part::val, {"valid", "val"});
  read(Part::test, {"test", "test-whole", "test-dev"});
  Splits& splits = builder.data.splits;
  const Array<NodeId> test = splits.test;
  std::vector<NodeId> labelled;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < test.size(); ++i) {
    if (builder.data.labels.empty() || builder.data.labels[test[i]] < 0) continue;
    labelled.push_back(test[i]);
    positions.push_back(i);
  }
  builder.data.origins.test.positions = std::move(positions);
  if (static_cast<int64_t>(labelled.size()) != test.size()) {
    builder.data.notes.push_back(human_count(test.size() - static_cast<int64_t>(labelled.size())) +
                                 " test papers have no public label and were left out of the test split");
  }
  splits.test = std::move(labelled);
}

std::string recognise_mag240m(const DataSource& source) {
  if (!source.has(kFeatures)) return "";
  for (const std::string& folder : source.folders("processed")) {
    if (is_relation(folder, "___")) return "holds processed/" + folder;
  }
  return "";
}

DatasetBuilder open_mag240m(const DataSource& source, const std::string&, const LoadOptions&) {
  std::vector<LargeRelation> relations = open_large_relations(source, "processed", "___", PairLayout::two_rows);
  FeatureInput features = npy_features(source.open(kFeatures));
  if (!features.stream) throw UserError(features.where + " at byte 0", "is not a matrix that is stored row by row");
  DatasetBuilder builder(source.path());
  for (const std::string& kind : kinds_of(relations)) {
    const auto stated = kind != "paper" && source.has("meta.pt") ? TorchFile(source.open("meta.pt")).integer(kind)
                                                                 : std::optional<int64_t>();
    if (stated) check_vertex_count(*stated, edges_of(relations, kind), source.at("meta.pt") + " at byte 0");
    builder.add_type(kind, kind == "paper" ? features.rows : stated ? *stated : count_in_edges(relations, kind));
  }
  add_relations(std::move(relations), builder);
  const int paper = builder.find_type("paper");
  builder.set_features(paper, std::move(features));
  builder.data.notes.emplace_back("relations are directed as stored; --undirected adds a reverse of each");
  builder.later(paper, [=](DatasetBuilder& b) {
    if (source.has(kLabels)) {
      Dataset part;
      labels_from(NpyReader(source.open(kLabels)), part);
      b.set_labels(paper, part);
    }
    read_splits(source, paper, b);
  });
  return builder;
}

}  // namespace

std::vector<Format> formats_in_mag240m() {
  return {{"mag240m", "MAG240M of OGB-LSC", recognise_mag240m, load_opened<open_mag240m>, "", opened<open_mag240m>}};
}

}  // namespace nacre

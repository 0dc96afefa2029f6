// OGB node property prediction with several kinds of vertices. As csv.gz: raw/num-node-dict (a line of kinds, a line of
// counts), raw/triplet-type-list (kind,relation,kind), raw/relations/KIND___RELATION___KIND/edge, raw/node-feat/KIND,
// raw/node-label/KIND. As archives whose members are named by kind or relation: raw/edge_index_dict.npz,
// num_nodes_dict.npz, node_feat.npz, node-label.npz. Kinds and relations are numbered in the order of their names.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/edge_list.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/formats/ogb_parts.h"
#include "nacre/data/formats/relation_name.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npy_edges.h"
#include "nacre/data/npz.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

using Counts = std::map<std::string, int64_t>;

Counts csv_counts(const Place& place) {
  const auto file = place.open_text("raw/num-node-dict.csv");
  std::vector<std::string> names;
  Counts counts;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    if (trimmed(line).empty()) return;
    const std::vector<std::string_view> fields = split_at(line, ',');
    if (names.empty()) {
      for (const std::string_view field : fields) names.emplace_back(trimmed(field));
      return;
    }
    if (!counts.empty()) throw_at_line(file->name(), number, "is a second line of counts: several graphs");
    if (fields.size() != names.size()) throw_at_line(file->name(), number, "has another number of columns than line 1");
    for (size_t i = 0; i < fields.size(); ++i) {
      int64_t count = 0;
      if (!parse_whole(trimmed(fields[i]), count))
        throw_at_line(file->name(), number, in_quotes(fields[i]) + " is no count");
      counts[names[i]] = count;
    }
  });
  if (counts.empty()) throw UserError(file->name(), "holds no counts of vertices");
  return counts;
}

std::vector<RelationName> csv_relations(const Place& place) {
  const auto file = place.open_text("raw/triplet-type-list.csv");
  std::vector<RelationName> relations;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    if (trimmed(line).empty()) return;
    const std::vector<std::string_view> f = split_at(line, ',');
    if (f.size() != 3) throw_at_line(file->name(), number, "is not 'kind,relation,kind'");
    relations.push_back({std::string(trimmed(f[0])), std::string(trimmed(f[1])), std::string(trimmed(f[2]))});
  });
  std::sort(relations.begin(), relations.end());
  return relations;
}

DatasetBuilder with_types(const Place& place, const Counts& counts, int64_t evidence) {
  DatasetBuilder builder(place.path());
  int64_t all = 0;
  for (const auto& [name, count] : counts) {
    builder.add_type(name, count);
    all += count;
  }
  check_vertex_count(all, evidence, place.path());
  return builder;
}

struct EdgePart {
  RelationName relation;
  EdgeList edges;
  std::string where;
};

void add(DatasetBuilder& builder, std::vector<EdgePart> parts) {
  for (EdgePart& part : parts) {
    const int src = builder.type(part.relation.src, part.where);
    const int dst = builder.type(part.relation.dst, part.where);
    part.edges.weight.clear();
    builder.add_edges({src, part.relation.name, dst}, std::move(part.edges), part.where);
  }
}

int64_t total(const std::vector<EdgePart>& parts) {
  int64_t edges = 0;
  for (const EdgePart& part : parts) edges += static_cast<int64_t>(part.edges.src.size());
  return edges;
}

// Kinds that have labels of their own; training takes one.
void set_labels(DatasetBuilder& builder, const std::string& type, const Dataset& part, bool& given,
                const std::string& where) {
  if (std::exchange(given, true)) {
    builder.data.notes.push_back("labels of kind " + type + " were not used: one kind may have labels");
  } else {
    builder.set_labels(builder.type(type, where), part);
  }
}

DatasetBuilder read_csv(const Place& place) {
  std::vector<EdgePart> parts;
  std::vector<std::string> notes;
  for (const RelationName& relation : csv_relations(place)) {
    const std::string folder = "raw/relations/" + relation.joined("___");
    const auto file = place.open_text(folder + "/edge.csv");
    parts.push_back({relation, read_edge_text(file, notes), file->name()});
    if (place.text(folder + "/num-edge-list.csv").empty()) continue;
    const int64_t stated = ogb_count(place, folder + "/num-edge-list.csv");
    const auto held = static_cast<int64_t>(parts.back().edges.src.size());
    if (stated != held)
      throw UserError(file->name(),
                      "holds " + human_count(held) + " edges, but " + human_count(stated) + " are stated");
  }
  DatasetBuilder builder = with_types(place, csv_counts(place), total(parts));
  add(builder, std::move(parts));
  for (const std::string& type : place.folders("raw/node-feat")) {
    const std::string inside = place.text("raw/node-feat/" + type + "/node-feat.csv");
    if (inside.empty()) continue;
    const auto file = place.open(inside);
    builder.set_features(builder.type(type, file->name()), read_text_matrix(file, NanAs::error).tensor());
  }
  bool labelled = false;
  for (const std::string& type : place.folders("raw/node-label")) {
    const std::string inside = place.text("raw/node-label/" + type + "/node-label.csv");
    if (inside.empty()) continue;
    Dataset part;
    labels_from_text(place.open(inside), part);
    set_labels(builder, type, part, labelled, place.at(inside));
  }
  return builder;
}

DatasetBuilder read_binary(const Place& place) {
  const NpzFile edges(place.open("raw/edge_index_dict.npz"));
  std::vector<std::string> keys = edges.keys();
  std::vector<EdgePart> parts;
  std::vector<std::string> notes;
  for (const std::string& key : keys) {
    NpyReader array = edges.open(key);
    const std::string where = array.where();
    parts.push_back(
        {split_relation(key, "___", where), pairs_from(std::move(array), PairLayout::two_rows, notes), where});
  }
  std::sort(parts.begin(), parts.end(), [](const EdgePart& a, const EdgePart& b) { return a.relation < b.relation; });
  const NpzFile nodes(place.open("raw/num_nodes_dict.npz"));
  Counts counts;
  for (const std::string& key : nodes.keys()) counts[key] = nodes.open(key).scalar_i64();
  DatasetBuilder builder = with_types(place, counts, total(parts));
  add(builder, std::move(parts));
  if (place.has("raw/node_feat.npz")) {
    const NpzFile features(place.open("raw/node_feat.npz"));
    for (const std::string& key : features.keys())
      builder.set_features(builder.type(key, features.name()), features_from(features.open(key)));
  }
  bool labelled = false;
  if (place.has("raw/node-label.npz")) {
    const NpzFile labels(place.open("raw/node-label.npz"));
    for (const std::string& key : labels.keys()) {
      Dataset part;
      labels_from(labels.open(key), part);
      set_labels(builder, key, part, labelled, labels.name());
    }
  }
  return builder;
}

}  // namespace

std::string recognise_ogb_hetero(const Place& place) {
  if (!place.text("raw/triplet-type-list.csv").empty()) return "holds raw/triplet-type-list.csv";
  return place.has("raw/edge_index_dict.npz") ? "holds raw/edge_index_dict.npz" : "";
}

Dataset load_ogb_hetero(const Place& place, const std::string& variant, const LoadOptions&) {
  DatasetBuilder builder = place.has("raw/edge_index_dict.npz") ? read_binary(place) : read_csv(place);
  const std::string split = ogb_split_folder(place, variant);
  if (!split.empty()) {
    bool any = false;
    for (const std::string& type : place.folders(split)) {
      if (place.text(split + "/" + type + "/train.csv").empty() || std::exchange(any, true)) continue;
      ogb_read_splits(place, split + "/" + type, builder.type(type, place.at(split)), builder);
    }
    if (!any) builder.data.notes.push_back(place.at(split) + " holds no KIND/train.csv.gz: no split was read");
  }
  builder.data.notes.emplace_back("relations are directed as stored; --undirected adds a reverse of each");
  return builder.finish();
}

}  // namespace nacre

// OGB node property prediction with several kinds of vertices. As csv.gz: raw/num-node-dict (a line
// of kinds, a line of counts), raw/triplet-type-list (kind,relation,kind),
// raw/relations/KIND___RELATION___KIND/edge, raw/node-feat/KIND, raw/node-label/KIND. As archives
// whose members are named by kind or relation: raw/edge_index_dict.npz, num_nodes_dict.npz,
// node_feat.npz, node-label.npz. Kinds and relations are numbered in the order of their names.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/formats/ogb_parts.h"
#include "nacre/data/formats/relation_name.h"
#include "nacre/data/node_data.h"
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
    if (!counts.empty())
      throw_at_line(file->name(), number, "is a second line of counts, but only sets of one graph are supported");
    if (fields.size() != names.size()) throw_at_line(file->name(), number, "has another number of columns than line 1");
    for (size_t i = 0; i < fields.size(); ++i) {
      int64_t count = 0;
      if (!parse_whole(trimmed(fields[i]), count))
        throw_at_line(file->name(), number, in_quotes(fields[i]) + " is not a number of nodes");
      counts[names[i]] = count;
    }
  });
  if (counts.empty()) throw_at_line(file->name(), 2, "the line of counts is missing");
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
    const std::string inside = "raw/relations/" + relations.back().joined("___") + "/edge.csv";
    if (place.text(inside).empty()) {
      throw_at_line(file->name(), number, "names a relation whose " + in_quotes(inside) + " is missing",
                    "the data set is incomplete: fetch it again");
    }
  });
  std::sort(relations.begin(), relations.end());
  return relations;
}

DatasetBuilder with_types(const Counts& counts, int64_t evidence, const std::string& where) {
  DatasetBuilder builder(where);
  int64_t all = 0;
  for (const auto& [name, count] : counts) {
    builder.add_type(name, count);
    all += count;
  }
  if (all == 0) throw UserError(where, "states that there are no nodes");
  check_vertex_count(all, evidence, where);
  return builder;
}

struct NamedInput {
  RelationName relation;
  EdgeInput edges;
};

void add(DatasetBuilder& builder, std::vector<NamedInput> parts) {
  for (NamedInput& part : parts) {
    const int src = builder.type(part.relation.src, part.edges.where + " at byte 0");
    const int dst = builder.type(part.relation.dst, part.edges.where + " at byte 0");
    builder.add_edges({src, part.relation.name, dst}, std::move(part.edges));
  }
}

int64_t total(const std::vector<NamedInput>& parts) {
  int64_t edges = 0;
  for (const NamedInput& part : parts) edges += part.edges.at_most;
  return edges;
}

// Sets the labels of a kind. Training uses one kind, so the labels of further kinds are only noted.
void set_labels(DatasetBuilder& builder, const std::string& type, const Dataset& part, bool& given,
                const std::string& where) {
  if (std::exchange(given, true)) {
    builder.data.notes.push_back("labels of kind " + type + " were not used: one kind may have labels");
  } else {
    builder.set_labels(builder.type(type, where), part);
  }
}

std::string where_directory(const NpzFile& npz) {
  return npz.name() + " at byte " + std::to_string(npz.directory_offset());
}

DatasetBuilder open_csv(const Place& place) {
  std::vector<NamedInput> parts;
  for (const RelationName& relation : csv_relations(place)) {
    const std::string folder = "raw/relations/" + relation.joined("___");
    parts.push_back({relation, text_edges(place.open_text(folder + "/edge.csv"))});
    if (!place.text(folder + "/num-edge-list.csv").empty())
      parts.back().edges.stated = ogb_count(place, folder + "/num-edge-list.csv");
  }
  const std::string counts = place.at(place.text("raw/num-node-dict.csv"));
  DatasetBuilder builder = with_types(csv_counts(place), total(parts), counts + ":2");
  add(builder, std::move(parts));
  for (const std::string& type : place.folders("raw/node-feat")) {
    const std::string inside = place.text("raw/node-feat/" + type + "/node-feat.csv");
    if (inside.empty()) continue;
    const auto file = place.open(inside);
    builder.set_features(builder.type(type, counts + ":1"), text_features(file));
  }
  return builder;
}

void read_csv_labels(const Place& place, DatasetBuilder& builder) {
  bool labelled = false;
  for (const std::string& type : place.folders("raw/node-label")) {
    const std::string inside = place.text("raw/node-label/" + type + "/node-label.csv");
    if (inside.empty()) continue;
    Dataset part;
    labels_from_text(place.open(inside), part);
    set_labels(builder, type, part, labelled, place.at(inside) + ":1");
  }
}

DatasetBuilder open_binary(const Place& place) {
  const NpzFile edges(place.open("raw/edge_index_dict.npz"));
  std::vector<std::string> keys = edges.keys();
  std::vector<NamedInput> parts;
  parts.reserve(keys.size());
  const std::string directory = where_directory(edges);
  for (const std::string& key : keys)
    parts.push_back({split_relation(key, "___", directory), npz_edges(edges, key, PairLayout::two_rows)});
  std::sort(parts.begin(), parts.end(),
            [](const NamedInput& a, const NamedInput& b) { return a.relation < b.relation; });
  const NpzFile nodes(place.open("raw/num_nodes_dict.npz"));
  Counts counts;
  for (const std::string& key : nodes.keys()) counts[key] = nodes.open(key).scalar_i64();
  const std::string where = where_directory(nodes);
  DatasetBuilder builder = with_types(counts, total(parts), where);
  add(builder, std::move(parts));
  if (place.has("raw/node_feat.npz")) {
    const NpzFile features(place.open("raw/node_feat.npz"));
    for (const std::string& key : features.keys())
      builder.set_features(builder.type(key, where_directory(features)), npz_features(features, key));
  }
  return builder;
}

void read_binary_labels(const Place& place, DatasetBuilder& builder) {
  if (!place.has("raw/node-label.npz")) return;
  bool labelled = false;
  const NpzFile labels(place.open("raw/node-label.npz"));
  for (const std::string& key : labels.keys()) {
    Dataset part;
    labels_from(labels.open(key), part);
    set_labels(builder, key, part, labelled, where_directory(labels));
  }
}

void read_kind_splits(const Place& place, const std::string& split, DatasetBuilder& builder) {
  bool any = false;
  for (const std::string& type : place.folders(split)) {
    const std::string train = split + "/" + type + "/train";
    if ((place.text(train + ".csv").empty() && !place.has(train + ".pt")) || std::exchange(any, true)) continue;
    ogb_read_splits(place, split + "/" + type, builder.type(type, place.at(split)), builder);
  }
  if (!any && !ogb_read_split_dict(place, split, builder)) {
    builder.data.notes.push_back(place.at(split) +
                                 " holds no KIND/train.csv.gz and no split_dict.pt: no split was read");
  }
}

std::string recognise_ogb_hetero(const Place& place) {
  if (!place.text("raw/triplet-type-list.csv").empty()) return "holds raw/triplet-type-list.csv";
  return place.has("raw/edge_index_dict.npz") ? "holds raw/edge_index_dict.npz" : "";
}

DatasetBuilder open_ogb_hetero(const Place& place, const std::string& variant, const LoadOptions&) {
  const bool binary = place.has("raw/edge_index_dict.npz");
  DatasetBuilder builder = binary ? open_binary(place) : open_csv(place);
  builder.data.notes.emplace_back("relations are directed as stored; --undirected adds a reverse of each");
  const std::string split = ogb_split_folder(place, variant);
  builder.later(0, [=](DatasetBuilder& b) {
    binary ? read_binary_labels(place, b) : read_csv_labels(place, b);
    if (!split.empty()) read_kind_splits(place, split, b);
  });
  return builder;
}

}  // namespace

std::vector<Format> formats_in_ogb_hetero() {
  return {{"ogb-hetero", "OGB node property with several kinds of nodes", recognise_ogb_hetero,
           load_opened<open_ogb_hetero>, "the split", opened<open_ogb_hetero>}};
}

}  // namespace nacre

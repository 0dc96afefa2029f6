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

Counts csv_counts(const DataSource& source) {
  const auto file = source.open_text("raw/num-node-dict.csv");
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

std::vector<RelationName> csv_relations(const DataSource& source) {
  const auto file = source.open_text("raw/triplet-type-list.csv");
  std::vector<RelationName> relations;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    if (trimmed(line).empty()) return;
    const std::vector<std::string_view> f = split_at(line, ',');
    if (f.size() != 3) throw_at_line(file->name(), number, "is not 'kind,relation,kind'");
    relations.push_back({std::string(trimmed(f[0])), std::string(trimmed(f[1])), std::string(trimmed(f[2]))});
    const std::string inside = "raw/relations/" + relations.back().joined("___") + "/edge.csv";
    if (source.text(inside).empty()) {
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
    builder.data.notes.push_back("labels of kind " + type +
                                 " were not used, because only one kind of node may have labels");
  } else {
    builder.set_labels(builder.type(type, where), part);
  }
}

std::string where_directory(const NpzFile& npz) {
  return npz.name() + " at byte " + std::to_string(npz.directory_offset());
}

DatasetBuilder open_csv(const DataSource& source) {
  std::vector<NamedInput> parts;
  for (const RelationName& relation : csv_relations(source)) {
    const std::string folder = "raw/relations/" + relation.joined("___");
    parts.push_back({relation, text_edges(source.open_text(folder + "/edge.csv"))});
    if (!source.text(folder + "/num-edge-list.csv").empty())
      parts.back().edges.stated = ogb_count(source, folder + "/num-edge-list.csv");
  }
  const std::string counts = source.at(source.text("raw/num-node-dict.csv"));
  DatasetBuilder builder = with_types(csv_counts(source), total(parts), counts + ":2");
  add(builder, std::move(parts));
  for (const std::string& type : source.folders("raw/node-feat")) {
    const std::string inside = source.text("raw/node-feat/" + type + "/node-feat.csv");
    if (inside.empty()) continue;
    const auto file = source.open(inside);
    builder.set_features(builder.type(type, counts + ":1"), text_features(file));
  }
  return builder;
}

void read_csv_labels(const DataSource& source, DatasetBuilder& builder) {
  bool labelled = false;
  for (const std::string& type : source.folders("raw/node-label")) {
    const std::string inside = source.text("raw/node-label/" + type + "/node-label.csv");
    if (inside.empty()) continue;
    Dataset part;
    labels_from_text(source.open(inside), part);
    set_labels(builder, type, part, labelled, source.at(inside) + ":1");
  }
}

DatasetBuilder open_binary(const DataSource& source) {
  const NpzFile edges(source.open("raw/edge_index_dict.npz"));
  std::vector<std::string> keys = edges.keys();
  std::vector<NamedInput> parts;
  parts.reserve(keys.size());
  const std::string directory = where_directory(edges);
  for (const std::string& key : keys)
    parts.push_back({split_relation(key, "___", directory), npz_edges(edges, key, PairLayout::two_rows)});
  std::sort(parts.begin(), parts.end(),
            [](const NamedInput& a, const NamedInput& b) { return a.relation < b.relation; });
  const NpzFile nodes(source.open("raw/num_nodes_dict.npz"));
  Counts counts;
  for (const std::string& key : nodes.keys()) counts[key] = nodes.open(key).scalar_i64();
  const std::string where = where_directory(nodes);
  DatasetBuilder builder = with_types(counts, total(parts), where);
  add(builder, std::move(parts));
  if (source.has("raw/node_feat.npz")) {
    const NpzFile features(source.open("raw/node_feat.npz"));
    for (const std::string& key : features.keys())
      builder.set_features(builder.type(key, where_directory(features)), npz_features(features, key));
  }
  return builder;
}

void read_binary_labels(const DataSource& source, DatasetBuilder& builder) {
  if (!source.has("raw/node-label.npz")) return;
  bool labelled = false;
  const NpzFile labels(source.open("raw/node-label.npz"));
  for (const std::string& key : labels.keys()) {
    Dataset part;
    labels_from(labels.open(key), part);
    set_labels(builder, key, part, labelled, where_directory(labels));
  }
}

void read_kind_splits(const DataSource& source, const std::string& split, DatasetBuilder& builder) {
  bool any = false;
  for (const std::string& type : source.folders(split)) {
    const std::string train = split + "/" + type + "/train";
    if ((source.text(train + ".csv").empty() && !source.has(train + ".pt")) || std::exchange(any, true)) continue;
    ogb_read_splits(source, split + "/" + type, builder.type(type, source.at(split)), builder);
  }
  if (!any && !ogb_read_split_dict(source, split, builder)) {
    builder.data.notes.push_back(source.at(split) +
                                 " holds no KIND/train.csv.gz and no split_dict.pt: no split was read");
  }
}

std::string recognise_ogb_hetero(const DataSource& source) {
  if (!source.text("raw/triplet-type-list.csv").empty()) return "holds raw/triplet-type-list.csv";
  return source.has("raw/edge_index_dict.npz") ? "holds raw/edge_index_dict.npz" : "";
}

DatasetBuilder open_ogb_hetero(const DataSource& source, const std::string& variant, const LoadOptions&) {
  const bool binary = source.has("raw/edge_index_dict.npz");
  DatasetBuilder builder = binary ? open_binary(source) : open_csv(source);
  builder.data.notes.emplace_back("relations are directed as stored; --undirected adds a reverse of each");
  const std::string split = ogb_split_folder(source, variant);
  builder.later(0, [=](DatasetBuilder& b) {
    binary ? read_binary_labels(source, b) : read_csv_labels(source, b);
    if (!split.empty()) read_kind_splits(source, split, b);
  });
  return builder;
}

}  // namespace

std::vector<Format> formats_in_ogb_hetero() {
  return {{"ogb-hetero", "OGB node property with several kinds of nodes", recognise_ogb_hetero,
           load_opened<open_ogb_hetero>, "the split", opened<open_ogb_hetero>}};
}

}  // namespace nacre

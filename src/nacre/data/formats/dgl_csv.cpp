// DGL's CSVDataset: meta.yaml names tables of vertices (node_id, and columns such as feat, label,
// train_mask) and of edges (src_id, dst_id, weight). Vertices are numbered in the order of their
// ids, as DGL does it: by value if all ids of a table are whole numbers, otherwise by spelling.
#include <algorithm>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/csv.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/formats/yaml.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

// The ids of one kind of vertices, sorted. The position of an id is the number of its vertex.
class SortedIds {
 public:
  // Takes the ids of all rows and returns the row of every vertex. If an id is repeated, its first
  // row counts.
  std::vector<int64_t> build(std::vector<std::string> words) {
    std::vector<int64_t> rows(words.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<int64_t> values(words.size());
    whole_ = true;
    for (size_t i = 0; i < words.size() && whole_; ++i) whole_ = parse_whole(words[i], values[i]);
    std::stable_sort(rows.begin(), rows.end(),
                     [&](int64_t a, int64_t b) { return whole_ ? values[a] < values[b] : words[a] < words[b]; });
    const auto same = [&](int64_t a, int64_t b) { return whole_ ? values[a] == values[b] : words[a] == words[b]; };
    rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
    for (const int64_t row : rows) {
      if (whole_) {
        numbers_.push_back(values[row]);
      } else {
        words_.push_back(std::move(words[row]));
      }
    }
    return rows;
  }

  int64_t find(const std::string& word) const {
    if (!whole_) return source(words_, word);
    int64_t value = 0;
    return parse_whole(word, value) ? source(numbers_, value) : -1;
  }

  bool renumbered() const {
    return !whole_ || (!numbers_.empty() && (numbers_.front() != 0 || numbers_.back() + 1 != size()));
  }
  bool whole() const { return whole_; }
  int64_t size() const { return static_cast<int64_t>(whole_ ? numbers_.size() : words_.size()); }
  const std::vector<int64_t>& numbers() const { return numbers_; }
  const std::vector<std::string>& words() const { return words_; }

 private:
  template <class T>
  static int64_t source(const std::vector<T>& sorted, const T& value) {
    const auto found = std::lower_bound(sorted.begin(), sorted.end(), value);
    return found != sorted.end() && *found == value ? found - sorted.begin() : -1;
  }

  bool whole_ = true;
  std::vector<int64_t> numbers_;
  std::vector<std::string> words_;
};

struct NodeTable {
  std::string type;
  std::string where;
  SortedIds ids;
  std::vector<int64_t> row_of;  // row of every vertex
  int64_t feature_width = 0;
  int64_t label_width = 0;
  std::vector<int64_t> lines;   // line of each row
  std::vector<float> features;  // values of each row
  std::vector<float> labels;
  // For each row: whether it is in train, val and test. A list is empty if the table has no column
  // for it.
  std::vector<std::vector<bool>> masks = std::vector<std::vector<bool>>(3);
};

void note_unused(const CsvTable& table, const std::vector<int>& used, std::vector<std::string>& notes) {
  std::string unused;
  for (int c = 0; c < static_cast<int>(table.columns().size()); ++c) {
    if (std::find(used.begin(), used.end(), c) == used.end())
      unused += (unused.empty() ? "" : ", ") + in_quotes(table.columns()[c]);
  }
  if (!unused.empty()) notes.push_back("columns of " + table.name() + " that were not used: " + unused);
}

// Refuses tables of several graphs, which a column of graph ids tells apart.
class OneGraph {
 public:
  OneGraph(const CsvTable& table, const Yaml& entry)
      : column_(table.find(entry.string("graph_id_field", "graph_id"))) {}
  int column() const { return column_; }
  void check(std::span<const std::string> fields, const std::string& where, int64_t line) {
    if (column_ < 0) return;
    const std::string& id = fields[column_];
    if (!seen_.empty() && id != seen_)
      throw_at_line(where, line, "this row belongs to a second graph", "only sets of one graph are supported");
    seen_ = id;
  }

 private:
  int column_;
  std::string seen_;
};

// Appends the vector in `text`. All rows must have vectors of the same width.
void append_row(const std::string& text, std::vector<float>& values, int64_t& width, const std::string& where,
                int64_t line) {
  const size_t before = values.size();
  parse_vector(text, values, where, line);
  const auto got = static_cast<int64_t>(values.size() - before);
  if (width != 0 && got != width)
    throw_at_line(where, line, "has " + human_count(got) + " values where other rows have " + human_count(width));
  width = got;
}

NodeTable read_nodes(const DataSource& source, const Yaml& entry, char separator, std::vector<std::string>& notes) {
  const CsvTable table(named_file(source, entry, "file_name"), separator);
  NodeTable nodes;
  nodes.type = entry.string("ntype", "_V");
  nodes.where = table.name();
  const int id = table.require(entry.string("node_id_field", "node_id"));
  const int feature = table.find_any({"feat", "feature", "features", "x", "attr"});
  const int label = table.find_any({"label", "labels", "y"});
  const int masks[] = {table.find("train_mask"), table.find_any({"val_mask", "valid_mask"}), table.find("test_mask")};
  OneGraph graph(table, entry);
  note_unused(table, {id, feature, label, masks[0], masks[1], masks[2], graph.column()}, notes);
  std::vector<std::string> ids;
  table.for_each_row([&](std::span<const std::string> fields, int64_t line) {
    const auto at = [&](int column) -> const std::string& { return fields[column]; };
    graph.check(fields, table.name(), line);
    ids.emplace_back(trimmed(at(id)));
    nodes.lines.push_back(line);
    if (feature >= 0) append_row(at(feature), nodes.features, nodes.feature_width, table.name(), line);
    if (label >= 0) append_row(at(label), nodes.labels, nodes.label_width, table.name(), line);
    for (size_t m = 0; m < 3; ++m) {
      if (masks[m] >= 0) nodes.masks[m].push_back(parse_flag(at(masks[m]), table.name(), line));
    }
  });
  const auto rows = static_cast<int64_t>(ids.size());
  nodes.row_of = nodes.ids.build(std::move(ids));
  if (nodes.ids.size() != rows)
    notes.push_back(human_count(rows - nodes.ids.size()) + " repeated ids in " + table.name() +
                    ": the first row of each counts");
  return nodes;
}

void add_attributes(const NodeTable& nodes, int type, bool& labelled, DatasetBuilder& builder) {
  const int64_t count = nodes.ids.size();
  if (nodes.feature_width > 0) {
    Tensor features(DType::f32, {count, nodes.feature_width});
    for (int64_t v = 0; v < count; ++v) {
      std::copy_n(nodes.features.begin() + nodes.row_of[v] * nodes.feature_width, nodes.feature_width,
                  features.data<float>() + v * nodes.feature_width);
    }
    builder.set_features(type, std::move(features), {nodes.where});
  }
  if (nodes.label_width == 0) return;
  if (std::exchange(labelled, true)) {
    builder.data.notes.push_back("labels of kind " + nodes.type +
                                 " were not used, because only one kind of node may have labels");
    return;
  }
  Dataset part;
  std::vector<float> labels(count * nodes.label_width);
  for (int64_t v = 0; v < count; ++v) {
    std::copy_n(nodes.labels.begin() + nodes.row_of[v] * nodes.label_width, nodes.label_width,
                labels.begin() + v * nodes.label_width);
  }
  std::vector<int64_t> lines(count);
  for (int64_t v = 0; v < count; ++v) lines[v] = nodes.lines[nodes.row_of[v]];
  labels_from_rows(labels, nodes.label_width, {nodes.where, "line", lines}, part);
  builder.set_labels(type, part);
  Array<NodeId>* splits[] = {&builder.data.splits.train, &builder.data.splits.val, &builder.data.splits.test};
  Origin* origins[] = {&builder.data.origins.train, &builder.data.origins.val, &builder.data.origins.test};
  for (size_t m = 0; m < 3; ++m) {
    std::vector<int64_t> ids;
    Origin origin{nodes.where, "line"};
    for (int64_t v = 0; v < count && !nodes.masks[m].empty(); ++v) {
      if (!nodes.masks[m][nodes.row_of[v]]) continue;
      ids.push_back(v);
      origin.positions.push_back(lines[v]);
    }
    *splits[m] = builder.split(type, ids, origin);
    *origins[m] = std::move(origin);
  }
}

const NodeTable& table_of(const std::vector<NodeTable>& tables, const std::string& type, const std::string& where) {
  for (const NodeTable& table : tables) {
    if (table.type == type) return table;
  }
  throw UserError(where, "no table of nodes is of kind " + in_quotes(type));
}

void read_edges(const DataSource& source, const Yaml& entry, char separator, const std::vector<NodeTable>& tables,
                DatasetBuilder& builder) {
  const CsvTable table(named_file(source, entry, "file_name"), separator);
  std::string names[3] = {"_V", "_E", "_V"};
  if (const Yaml& etype = entry.get("etype"); etype.given()) {
    if (etype.list().size() != 3) throw UserError(etype.where, "etype is not [kind, relation, kind]");
    for (size_t i = 0; i < 3; ++i) names[i] = etype.list()[i].string();
  }
  const NodeTable& from = table_of(tables, names[0], entry.where);
  const NodeTable& to = table_of(tables, names[2], entry.where);
  const int src = table.require(entry.string("src_id_field", "src_id"));
  const int dst = table.require(entry.string("dst_id_field", "dst_id"));
  const int weight = table.find_any({"weight", "edge_weight"});
  OneGraph graph(table, entry);
  note_unused(table, {src, dst, weight, graph.column()}, builder.data.notes);
  EdgeList edges;
  table.for_each_row([&](std::span<const std::string> fields, int64_t line) {
    graph.check(fields, table.name(), line);
    const auto vertex = [&](const NodeTable& nodes, int column) {
      const std::string id(trimmed(fields[column]));
      const int64_t found = nodes.ids.find(id);
      if (found < 0) throw_at_line(table.name(), line, in_quotes(id) + " is not a node of " + nodes.where);
      return static_cast<NodeId>(found);
    };
    edges.src.push_back(vertex(from, src));
    edges.dst.push_back(vertex(to, dst));
    if (weight < 0) return;
    float value = 0;
    const std::string& text = fields[weight];
    if (!parse_real(trimmed(text), value))
      throw_at_line(table.name(), line, in_quotes(text) + " is not a finite weight");
    edges.weight.push_back(value);
  });
  builder.add_edges({builder.type(names[0], entry.where), names[1], builder.type(names[2], entry.where)},
                    std::move(edges), table.name());
}

// Keeps the ids of all kinds: as numbers if every kind has numbers, otherwise as words.
void keep_ids(const std::vector<NodeTable>& tables, Dataset& data) {
  const auto any = [&](auto test) { return std::any_of(tables.begin(), tables.end(), test); };
  if (!any([](const NodeTable& t) { return t.ids.renumbered(); })) return;
  if (!any([](const NodeTable& t) { return !t.ids.whole(); })) {
    std::vector<int64_t> ids;
    for (const NodeTable& t : tables) ids.insert(ids.end(), t.ids.numbers().begin(), t.ids.numbers().end());
    data.original_ids = std::move(ids);
    return;
  }
  for (const NodeTable& t : tables) {
    for (const int64_t id : t.ids.numbers()) data.node_names.push_back(std::to_string(id));
    data.node_names.insert(data.node_names.end(), t.ids.words().begin(), t.ids.words().end());
  }
}

std::string recognise_dgl_csv(const DataSource& source) { return source.has("meta.yaml") ? "holds meta.yaml" : ""; }

Dataset load_dgl_csv(const DataSource& source, const std::string&, const LoadOptions&) {
  const Yaml meta = read_yaml(source.open("meta.yaml"));
  const std::string separator = meta.string("separator", ",");
  if (separator.size() != 1) throw UserError(meta.get("separator").where, "the separator is not one character");
  DatasetBuilder builder(source.path());
  builder.data.name = meta.string("dataset_name", "");
  std::vector<NodeTable> tables;
  for (const Yaml& entry : meta.list("node_data")) {
    tables.push_back(read_nodes(source, entry, separator[0], builder.data.notes));
    builder.add_type(tables.back().type, tables.back().ids.size());
  }
  if (tables.empty()) throw UserError(meta.where, "node_data names no table");
  for (const Yaml& entry : meta.list("edge_data")) read_edges(source, entry, separator[0], tables, builder);
  bool labelled = false;
  for (size_t t = 0; t < tables.size(); ++t) add_attributes(tables[t], static_cast<int>(t), labelled, builder);
  keep_ids(tables, builder.data);
  return builder.finish();
}

}  // namespace

std::vector<Format> formats_in_dgl_csv() {
  return {{"dgl-csv", "DGL CSVDataset (meta.yaml)", recognise_dgl_csv, load_dgl_csv}};
}

}  // namespace nacre

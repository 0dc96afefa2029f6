// Geom-GCN: out1_node_feature_label.txt (id, features, class, after a line of names),
// out1_graph_edges.txt (source, destination) and NAME_split_0.6_0.2_K.npz with masks. Features are
// a list of 0 and 1 separated by commas, or a list of the columns that are 1 (film, which has 932
// columns).
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/clean.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npz.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

constexpr const char* kNodes = "out1_node_feature_label.txt";
constexpr const char* kEdges = "out1_graph_edges.txt";
constexpr int64_t kFilmColumns = 932;

struct Nodes {
  std::vector<std::vector<float>> rows;  // values as written in the file
  std::vector<int32_t> labels;
  std::vector<int64_t> lines;
  std::string file;

  [[noreturn]] void fail(size_t vertex, const std::string& what) const { throw_at_line(file, lines[vertex], what); }
};

std::vector<float> numbers_in(std::string_view text, const std::string& where, int64_t line) {
  std::vector<float> numbers;
  for (const std::string_view field : split_at(text, ',')) {
    float value = 0;
    if (!parse_real(trimmed(field), value)) throw_at_line(where, line, in_quotes(field) + " is not a number");
    numbers.push_back(value);
  }
  return numbers;
}

Nodes read_nodes(const std::shared_ptr<const MappedFile>& file) {
  struct Found {
    int64_t id;
    int64_t line;
    std::vector<float> row;
    int32_t label;
  };
  std::vector<Found> found;
  int64_t lines = 0;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    lines = number;
    if (number == 1 || trimmed(line).empty()) return;
    const std::vector<std::string_view> fields = split_at(line, '\t');
    int64_t id = 0;
    int64_t label = 0;
    if (fields.size() != 3) throw_at_line(file->name(), number, "is not 'id, features, class' with tabs between");
    if (!parse_whole(trimmed(fields[0]), id) || id < 0)
      throw_at_line(file->name(), number, in_quotes(fields[0]) + " is not a node id");
    if (!parse_whole(trimmed(fields[2]), label) || label < 0 || label >= kMaxClasses)
      throw_at_line(file->name(), number, in_quotes(fields[2]) + " is not a class");
    found.push_back({id, number, numbers_in(fields[1], file->name(), number), static_cast<int32_t>(label)});
  });
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.id < b.id; });
  Nodes nodes;
  nodes.file = file->name();
  for (Found& f : found) {
    if (f.id != static_cast<int64_t>(nodes.rows.size())) {
      throw_at_line(
          file->name(), f.line,
          "is node " + std::to_string(f.id) + ", but there is " +
              (f.id + 1 == static_cast<int64_t>(nodes.rows.size()) ? "another line of that node"
                                                                   : "no node " + std::to_string(nodes.rows.size())));
    }
    nodes.rows.push_back(std::move(f.row));
    nodes.labels.push_back(f.label);
    nodes.lines.push_back(f.line);
  }
  if (nodes.rows.empty()) throw_at_line(file->name(), lines, "the file ends without naming a node");
  return nodes;
}

Tensor dense_features(const Nodes& nodes) {
  const size_t width = nodes.rows[0].size();
  Tensor tensor(DType::f32, {static_cast<int64_t>(nodes.rows.size()), static_cast<int64_t>(width)});
  auto* to = tensor.data<float>();
  for (size_t v = 0; v < nodes.rows.size(); ++v) {
    if (nodes.rows[v].size() != width) nodes.fail(v, "has another number of features than node 0");
    std::copy(nodes.rows[v].begin(), nodes.rows[v].end(), to + v * width);
  }
  return tensor;
}

Tensor listed_features(const Nodes& nodes) {
  Tensor tensor = Tensor::zeros(DType::f32, {static_cast<int64_t>(nodes.rows.size()), kFilmColumns});
  auto* to = tensor.data<float>();
  for (size_t v = 0; v < nodes.rows.size(); ++v) {
    for (const float column : nodes.rows[v]) {
      if (!(column >= 0 && column < kFilmColumns) || column != static_cast<float>(static_cast<int64_t>(column)))
        nodes.fail(v, "names a feature that does not exist; there are " + human_count(kFilmColumns) + " features");
      to[v * kFilmColumns + static_cast<size_t>(column)] = 1;
    }
  }
  return tensor;
}

// Returns whether features are lists of columns: these differ in length or have values above 1.
bool lists_columns(const Nodes& nodes) {
  return std::any_of(nodes.rows.begin(), nodes.rows.end(), [&](const std::vector<float>& row) {
    return row.size() != nodes.rows[0].size() || std::any_of(row.begin(), row.end(), [](float v) { return v > 1; });
  });
}

EdgeList read_edges(const std::shared_ptr<const MappedFile>& file, int64_t num_nodes) {
  EdgeList edges;
  edges.num_nodes = num_nodes;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    const std::vector<std::string_view> fields = split_blanks(line);
    if (number == 1 || fields.empty()) return;
    int64_t ends[2] = {-1, -1};
    if (fields.size() != 2) throw_at_line(file->name(), number, "is not 'source destination'");
    for (size_t i = 0; i < 2; ++i) {
      if (!parse_whole(fields[i], ends[i]) || ends[i] < 0 || ends[i] >= num_nodes)
        throw_at_line(file->name(), number,
                      in_quotes(fields[i]) + " is none of the " + human_count(num_nodes) + " nodes");
    }
    edges.src.push_back(static_cast<NodeId>(ends[0]));
    edges.dst.push_back(static_cast<NodeId>(ends[1]));
  });
  return edges;
}

void read_splits(const DataSource& source, const std::string& variant, Dataset& data) {
  std::vector<std::string> files;
  const std::string wanted = "_" + (variant.empty() ? "0" : variant) + ".npz";
  std::string chosen;
  for (const std::string& name : source.files()) {
    if (!name.ends_with(".npz") || name.find("_split_") == std::string::npos) continue;
    files.push_back(name);
    if (name.ends_with(wanted)) chosen = name;
  }
  if (chosen.empty() && !variant.empty())
    throw UserError(source.path(), "has no split " + variant, "found: " + std::to_string(files.size()) + " splits");
  if (chosen.empty() && !files.empty()) chosen = files[0];
  if (chosen.empty()) {
    data.notes.emplace_back("no NAME_split_*.npz was found: the set has no split");
    return;
  }
  splits_from(NpzFile(source.open(chosen)), data.num_nodes(), data);
  data.notes.push_back("the split is that of " + chosen + ", one of " + std::to_string(files.size()) +
                       " files; --format geom-gcn:K takes split K");
}

std::string recognise_geom_gcn(const DataSource& source) {
  return source.has(kEdges) && source.has(kNodes) ? std::string("holds ") + kEdges : "";
}

Dataset load_geom_gcn(const DataSource& source, const std::string& variant, const LoadOptions&) {
  Dataset data;
  const auto file = source.open(kNodes);
  Nodes nodes = read_nodes(file);
  const auto count = static_cast<int64_t>(nodes.rows.size());
  data.features = lists_columns(nodes) ? listed_features(nodes) : dense_features(nodes);
  data.origins.features = data.origins.labels = {file->name(), "line", nodes.lines};
  data.num_classes = int64_t{*std::max_element(nodes.labels.begin(), nodes.labels.end())} + 1;
  data.labels = std::move(nodes.labels);
  data.graph =
      cleaned(build_graph(read_edges(source.open(kEdges), count), source.at(kEdges)), {.merge_duplicates = true});
  data.notes.emplace_back("edges are directed, repeated ones merged; --undirected adds their reverse");
  read_splits(source, variant, data);
  return data;
}

}  // namespace

std::vector<Format> formats_in_geom_gcn() {
  return {{"geom-gcn", "Geom-GCN text", recognise_geom_gcn, load_geom_gcn, "the split: 0 to 9"}};
}

}  // namespace nacre

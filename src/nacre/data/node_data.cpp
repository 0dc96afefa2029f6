#include "nacre/data/node_data.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/warnings.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/label_text.h"
#include "nacre/data/made_features.h"
#include "nacre/data/named_lines.h"
#include "nacre/data/node_finder.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

constexpr const char* kNpyMagic = "\x93NUMPY";
constexpr const char* kZipMagic = "PK";

int32_t to_label(int64_t value, const Origin& origin, int64_t item) {
  if (value < 0) return -1;
  if (value < kMaxClasses) return static_cast<int32_t>(value);
  throw UserError(origin.at(item), "class " + std::to_string(value) + " is out of range", "number the classes from 0");
}

uint8_t to_target(double value, const Origin& origin, int64_t item) {
  if (value == 0 || value == 1) return static_cast<uint8_t>(value);
  throw UserError(origin.at(item),
                  "holds " + std::to_string(value) + "; several labels per node must be given as 0 or 1",
                  "give one class per node, or 0/1 per class");
}

void set_labels(std::vector<int32_t> labels, Dataset& data) {
  const auto top = std::max_element(labels.begin(), labels.end());
  data.num_classes = top == labels.end() ? 0 : int64_t{*top} + 1;
  data.labels = std::move(labels);
}

void require_columns(int64_t columns, const Origin& origin) {
  if (columns > kMaxClasses) {
    throw UserError(origin.at(0), "has " + human_count(columns) + " columns of labels, more than the " +
                                      human_count(kMaxClasses) + " that are possible");
  }
}

std::vector<NodeId> ids_from_mask(NpyReader array, int64_t num_nodes) {
  if (array.shape().size() == 2 && array.shape()[1] > 1) {
    throw UserError(array.where_header(),
                    "has shape " + shape_text(array.shape()) + ", which is several splits side by side",
                    "save one column of it");
  }
  if (array.header().count != num_nodes) {
    throw UserError(array.where_header(),
                    "has shape " + shape_text(array.shape()) + ", but there are " + human_count(num_nodes) + " nodes",
                    "a mask needs one value per node");
  }
  std::vector<NodeId> ids;
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 0 && values[i] != 1) {
        throw UserError(Origin{array.where()}.at(first + static_cast<int64_t>(i)),
                        "holds " + std::to_string(values[i]) + "; a mask holds 0 and 1");
      }
      if (values[i] == 1) ids.push_back(static_cast<NodeId>(first + i));
    }
  });
  return ids;
}

std::vector<NodeId> ids_from_list(NpyReader array, int64_t num_nodes) {
  std::vector<NodeId> ids(array.header().count);
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] >= num_nodes) {
        throw UserError(array.where(), "node " + std::to_string(values[i]) + " at position " +
                                           std::to_string(first + i) + " does not exist (there are " +
                                           human_count(num_nodes) + " nodes)");
      }
      ids[first + i] = static_cast<NodeId>(values[i]);
    }
  });
  return ids;
}

void read_split(const NpzFile& npz, const std::vector<std::string>& names, int64_t num_nodes, Array<NodeId>& ids,
                Origin& origin) {
  for (const std::string ending : {"_idx", "_mask"}) {
    for (const std::string& name : names) {
      if (!npz.has(name + ending)) continue;
      NpyReader array = npz.open(name + ending);
      const bool mask = ending == "_mask" || array.header().type.kind == 'b';
      origin = {array.where(), "entry", {}, mask};
      ids = mask ? ids_from_mask(std::move(array), num_nodes) : ids_from_list(std::move(array), num_nodes);
      return;
    }
  }
}

// Opens the array that a file was given for: the file itself, the usual key of an archive, or the
// only member of an archive.
NpyReader open_array(const std::shared_ptr<const MappedFile>& file, const std::string& key) {
  if (file->starts_with(kNpyMagic)) return NpyReader(file);
  const NpzFile npz(file);
  const std::vector<std::string> keys = npz.keys();
  return npz.open(keys.size() == 1 ? keys[0] : key);
}

bool holds_arrays(const MappedFile& file) { return file.starts_with(kNpyMagic) || file.starts_with(kZipMagic); }

void read_splits_npz(const NpzFile& npz, int64_t num_nodes, Dataset& data) {
  splits_from(npz, num_nodes, data);
  const Splits& splits = data.splits;
  if (splits.train.empty() && splits.val.empty() && splits.test.empty()) {
    throw UserError(npz.name(), "holds no split (arrays found: " + npz.key_list() + ")",
                    "save train_idx, val_idx and test_idx, or train_mask, val_mask and test_mask");
  }
}

// Returns the list on which a word puts a node, or null for none. Throws at `line` of `file` for
// unknown words.
template <class Lists>
std::vector<NodeId>* split_list(std::string_view word, Lists& lists, const std::string& file, int64_t line) {
  if (word == "train") return &lists.train;
  if (word == "val" || word == "valid" || word == "validation") return &lists.val;
  if (word == "test") return &lists.test;
  if (word == "none" || word == "-" || word.empty()) return nullptr;
  throw_at_line(file, line, "'" + std::string(word.substr(0, 40)) + "' is not train, val, test or none");
}

struct SplitLists {
  std::vector<NodeId> train, val, test;
  Splits splits() && { return {std::move(train), std::move(val), std::move(test)}; }
};

// Reads lines of node and split, in any order.
Splits read_splits_by_node(const std::shared_ptr<const MappedFile>& file, Dataset& data) {
  SplitLists lists;
  NodeFinder nodes(data);
  int64_t lines = 0;
  for_each_named_line(file, [&](const std::vector<std::string>& fields, int64_t line) {
    if (fields.size() != 2) throw_at_line(file->name(), line, "is not 'node,split'");
    if (lines == 0 && (fields[1] == "split" || fields[1] == "set")) return;
    ++lines;
    std::vector<NodeId>* list = split_list(fields[1], lists, file->name(), line);
    const int64_t node = nodes.find_at(fields[0], file->name(), line);
    if (list != nullptr && node >= 0) list->push_back(static_cast<NodeId>(node));
  });
  nodes.note_unknown("lines of the split", file->name(), lines, data);
  return std::move(lists).splits();
}

// Reads a table whose first column names the nodes, in any order. Nodes without a line get zeros.
Tensor named_features(const std::shared_ptr<const MappedFile>& file, Dataset& data) {
  std::vector<float> values;
  std::vector<std::pair<int64_t, int64_t>> rows;  // node and position of its first value
  NodeFinder nodes(data);
  size_t width = 0;
  int64_t lines = 0;
  for_each_named_line(file, [&](const std::vector<std::string>& fields, int64_t line) {
    float value = 0;
    const bool title = lines == 0 && rows.empty() && fields.size() > 1 && !parse_real(fields[1], value);
    if (title && width == 0) {
      width = fields.size() - 1;
      return;
    }
    if (width == 0) width = fields.size() - 1;
    if (fields.size() < 2 || fields.size() - 1 != width)
      throw_at_line(file->name(), line, "does not have a name and " + std::to_string(width) + " features");
    ++lines;
    const int64_t node = nodes.find_at(fields[0], file->name(), line);
    if (node >= 0) rows.emplace_back(node, static_cast<int64_t>(values.size()));
    for (size_t i = 1; node >= 0 && i < fields.size(); ++i) {
      if (!parse_real(fields[i], value)) throw_at_line(file->name(), line, in_quotes(fields[i]) + " is not a number");
      values.push_back(value);
    }
  });
  nodes.note_unknown("rows of features", file->name(), lines, data);
  if (rows.empty()) throw UserError(file->name(), "holds no rows of features");
  Tensor features = Tensor::zeros(DType::f32, {data.num_nodes(), static_cast<int64_t>(width)});
  std::vector<char> seen(data.num_nodes(), 0);
  for (const auto& [node, first] : rows) {
    if (std::exchange(seen[node], 1) != 0)
      throw UserError(file->name(), "has two rows for the node " + in_quotes(data.node_names[node]));
    std::copy_n(values.data() + first, width, features.data<float>() + node * static_cast<int64_t>(width));
  }
  const auto without = std::count(seen.begin(), seen.end(), 0);
  if (without > 0)
    data.notes.push_back(kWarningNote + human_count(without) + " nodes have no row of features: theirs are zeros");
  return features;
}

Splits read_splits_text(const std::shared_ptr<const MappedFile>& file, int64_t num_nodes) {
  SplitLists lists;
  int64_t vertex = 0;
  for_each_word(file, [&](std::string_view word, int64_t line) {
    if (vertex >= num_nodes) throw_at_line(file->name(), line, "has more lines than there are nodes");
    if (std::vector<NodeId>* list = split_list(word, lists, file->name(), line); list != nullptr)
      list->push_back(static_cast<NodeId>(vertex));
    ++vertex;
  });
  if (vertex != num_nodes) {
    throw UserError(file->name() + " row " + std::to_string(vertex),
                    "has " + human_count(vertex) + " lines, but there are " + human_count(num_nodes) + " nodes",
                    "give one of train, val, test or none per node");
  }
  return std::move(lists).splits();
}

}  // namespace

int64_t largest_id(const EdgeList& edges) {
  int64_t top = -1;
  for (const std::vector<NodeId>* column : {&edges.src, &edges.dst}) {
    for (const NodeId id : *column) top = std::max<int64_t>(top, id);
  }
  return top;
}

Graph graph_from(EdgeList edges, const std::string& where) {
  for (size_t i = 0; i < edges.src.size(); ++i) {
    const NodeId v = std::max(edges.src[i], edges.dst[i]);
    if (v < edges.num_nodes) continue;
    throw UserError(where, "edge " + std::to_string(i) + " names node " + std::to_string(v) + ", but there are only " +
                               human_count(edges.num_nodes) + " nodes");
  }
  return build_graph(std::move(edges), where);
}

bool is_plausible_vertex_count(int64_t num_nodes, int64_t evidence) {
  constexpr int64_t always_fine = 1 << 20;
  constexpr int64_t most_per_evidence = 64;
  return num_nodes <= always_fine || num_nodes / most_per_evidence <= evidence;
}

void check_vertex_count(int64_t num_nodes, int64_t evidence, const std::string& where) {
  if (is_plausible_vertex_count(num_nodes, evidence)) return;
  throw UserError(
      where, "node ids reach " + human_count(num_nodes - 1) + " with only " + human_count(evidence) + " edges or rows",
      "renumber the nodes from 0 (edge lists: --format snap), or confirm their number with --num-nodes");
}

Tensor features_from(NpyReader array) {
  if (array.shape().empty() || array.shape().size() > 2 || (array.shape().size() == 2 && array.shape()[1] == 0)) {
    throw UserError(array.where_header(), "has shape " + shape_text(array.shape()) + "; [nodes, features] is expected");
  }
  Tensor features = array.to_f32();
  if (features.shape().size() == 2) return features;
  Tensor column(DType::f32, {features.size(), 1});
  std::copy_n(features.data<float>(), features.size(), column.data<float>());
  return column;
}

void set_features(NpyReader array, Dataset& data) {
  data.origins.features = {array.where()};
  data.features = features_from(std::move(array));
}

void labels_from(NpyReader array, Dataset& data) {
  const Shape shape = array.shape();
  if (shape.empty() || shape.size() > 2 || (shape.size() == 2 && shape[1] == 0)) {
    throw UserError(array.where_header(),
                    "has shape " + shape_text(shape) + "; [nodes] or [nodes, classes] is expected");
  }
  data.origins.labels = {array.where()};
  if (shape.size() == 1 || shape[1] == 1) {
    std::vector<int32_t> labels(array.header().count);
    array.stream_i64(NanAs::minus_one, [&](int64_t first, std::span<const int64_t> values) {
      for (size_t i = 0; i < values.size(); ++i)
        labels[first + i] = to_label(values[i], data.origins.labels, first + static_cast<int64_t>(i));
    });
    set_labels(std::move(labels), data);
    return;
  }
  require_columns(shape[1], data.origins.labels);
  Tensor targets(DType::u8, shape);
  auto* to = targets.data<uint8_t>();
  array.stream_f32([&](int64_t first, std::span<const float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t at = array.row_major_index(first + static_cast<int64_t>(i));
      to[at] = to_target(values[i], data.origins.labels, at / shape[1]);
    }
  });
  data.num_classes = shape[1];
  data.targets = std::move(targets);
}

void labels_from_rows(std::span<const float> values, int64_t columns, Origin origin, Dataset& data) {
  data.origins.labels = std::move(origin);
  const Origin& where = data.origins.labels;
  const int64_t rows = static_cast<int64_t>(values.size()) / columns;
  if (columns > 1) {
    require_columns(columns, where);
    Tensor targets(DType::u8, {rows, columns});
    for (int64_t i = 0; i < targets.size(); ++i) targets.data<uint8_t>()[i] = to_target(values[i], where, i / columns);
    data.num_classes = columns;
    data.targets = std::move(targets);
    return;
  }
  std::vector<int32_t> labels(rows);
  for (int64_t i = 0; i < rows; ++i) {
    const float value = values[i];
    if (value != std::trunc(value) || std::abs(value) > 1e9F) {
      throw UserError(where.at(i),
                      "label " + std::to_string(value) + " of node " + std::to_string(i) + " is not a whole number",
                      "number the classes from 0");
    }
    labels[i] = to_label(static_cast<int64_t>(value), where, i);
  }
  set_labels(std::move(labels), data);
}

void labels_from_text(const std::shared_ptr<const MappedFile>& file, Dataset& data) {
  const TextMatrix matrix = read_text_matrix(file, NanAs::minus_one);
  labels_from_rows(matrix.values, matrix.columns, {file->name()}, data);
}

void splits_from(const NpzFile& npz, int64_t num_nodes, Dataset& data) {
  read_split(npz, {"train"}, num_nodes, data.splits.train, data.origins.train);
  read_split(npz, {"val", "valid"}, num_nodes, data.splits.val, data.origins.val);
  read_split(npz, {"test"}, num_nodes, data.splits.test, data.origins.test);
}

bool read_node_files(const LoadOptions& options, Dataset& data) {
  const auto open = [](const std::string& path, bool taken) {
    if (taken) throw UserError(path, "the data set already holds what this file would give", "leave the file out");
    return MappedFile::open(path);
  };
  const bool features = !options.features_file.empty() && !is_made_features(options.features_file);
  if (features) {
    const auto file = open(options.features_file, data.features.defined());
    data.origins.features = {options.features_file};
    data.features = holds_arrays(*file)        ? features_from(open_array(file, "x"))
                    : !data.node_names.empty() ? named_features(file, data)
                                               : std::move(read_text_matrix(file, NanAs::error)).tensor();
  }
  if (!options.labels_file.empty()) {
    const auto file = open(options.labels_file, data.multilabel() || !data.labels.empty());
    if (holds_arrays(*file)) {
      labels_from(open_array(file, "y"), data);
    } else {
      read_label_text(file, data);
    }
  }
  if (!options.splits_file.empty()) {
    const Splits& splits = data.splits;
    const auto file = open(options.splits_file, !splits.train.empty() || !splits.val.empty() || !splits.test.empty());
    if (file->starts_with(kZipMagic)) {
      read_splits_npz(NpzFile(file), data.num_nodes(), data);
    } else {
      const auto head = first_named_lines(file, 1);
      const bool by_node = !head.empty() && head[0].size() == 2;
      data.splits = by_node ? read_splits_by_node(file, data) : read_splits_text(file, data.num_nodes());
      const Origin by_row{file->name(), "row", {}, true};
      data.origins.train = data.origins.val = data.origins.test = by_node ? Origin() : by_row;
    }
  }
  return features || !options.labels_file.empty() || !options.splits_file.empty();
}

}  // namespace nacre

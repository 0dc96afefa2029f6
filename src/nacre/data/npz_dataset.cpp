#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npz.h"

namespace nacre {
namespace {

constexpr std::array kKnownKeys = {"edge_index", "src",         "dst",       "x",          "y",        "train_idx",
                                   "val_idx",    "test_idx",    "valid_idx", "train_mask", "val_mask", "test_mask",
                                   "valid_mask", "edge_weight", "edge_type", "num_nodes"};

void require_edges(const NpzFile& npz) {
  if (npz.has("edge_index") || (npz.has("src") && npz.has("dst"))) return;
  const std::vector<std::string> keys = npz.keys();
  if (npz.has("train_user") || npz.has("train_item")) {
    throw UserError(npz.name(),
                    "is a user-item set (it has train_user/train_item), which this loader does not read yet",
                    "give a graph: edge_index, or src and dst");
  }
  if (std::any_of(keys.begin(), keys.end(), [](const std::string& k) { return k.ends_with("data.pkl"); })) {
    throw UserError(npz.name(), "is a PyTorch file, which only Python can read safely",
                    "save its tensors with numpy.savez: edge_index, x, y, train_idx, val_idx, test_idx");
  }
  throw UserError(npz.name(), "has no edge_index (arrays found: " + npz.key_list() + ")",
                  "save the edges as edge_index [2, E], or as src and dst");
}

NodeId to_node(int64_t value, int64_t position, const std::string& where) {
  if (value >= 0 && value <= kMaxNodeId) return static_cast<NodeId>(value);
  throw UserError(where, "vertex id " + std::to_string(value) + " at position " + std::to_string(position) +
                             (value < 0 ? " is negative" : " is beyond the largest possible, 4,294,967,294"));
}

// Storage order decides which half of the pairs comes when: all sources first, or source and destination in turn.
void read_pairs(NpyReader& array, EdgeList& edges, std::vector<std::string>& notes) {
  const Shape& shape = array.shape();
  const bool rows = shape.size() == 2 && shape[0] == 2;
  if (!rows && !(shape.size() == 2 && shape[1] == 2)) {
    throw UserError(array.where(), "has shape " + shape_text(shape) + "; [2, E] is expected", "transpose or split it");
  }
  if (!rows) notes.emplace_back("edge_index has shape [E, 2]: read as one (source, destination) pair per row");
  const int64_t count = array.header().count / 2;
  const bool in_turn = rows == array.header().fortran;
  edges.src.resize(static_cast<size_t>(count));
  edges.dst.resize(static_cast<size_t>(count));
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t at = first + static_cast<int64_t>(i);
      const NodeId id = to_node(values[i], at, array.where());
      if (in_turn) {
        (at % 2 == 0 ? edges.src : edges.dst)[at / 2] = id;
      } else {
        (at < count ? edges.src : edges.dst)[at < count ? at : at - count] = id;
      }
    }
  });
}

std::vector<NodeId> read_ids(NpyReader array) {
  if (array.shape().size() != 1) {
    throw UserError(array.where(), "has shape " + shape_text(array.shape()) + "; [E] is expected");
  }
  std::vector<NodeId> ids(static_cast<size_t>(array.header().count));
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) ids[first + i] = to_node(values[i], first + i, array.where());
  });
  return ids;
}

void require_per_edge(const NpyReader& array, size_t edges) {
  if (array.header().count == static_cast<int64_t>(edges)) return;
  throw UserError(array.where(),
                  "has shape " + shape_text(array.shape()) + ", but there are " +
                      human_count(static_cast<int64_t>(edges)) + " edges",
                  "store one value per edge");
}

void read_edge_weight(NpyReader array, EdgeList& edges) {
  require_per_edge(array, edges.src.size());
  edges.weight.resize(edges.src.size());
  array.stream_f32([&](int64_t first, std::span<const float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) {
        throw UserError(array.where(), "the weight at position " + std::to_string(first + i) + " is not finite");
      }
      edges.weight[first + i] = values[i];
    }
  });
}

void read_edge_type(NpyReader array, EdgeList& edges) {
  require_per_edge(array, edges.src.size());
  edges.type.resize(edges.src.size());
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] >= kMaxEdgeTypes) {
        throw UserError(array.where(), "edge type " + std::to_string(values[i]) + " at position " +
                                           std::to_string(first + i) + " is not within 0 to 65,534");
      }
      edges.type[first + i] = static_cast<uint16_t>(values[i]);
      edges.num_types = std::max(edges.num_types, static_cast<int>(values[i]) + 1);
    }
  });
}

EdgeList read_edges(const NpzFile& npz, std::vector<std::string>& notes) {
  EdgeList edges;
  if (npz.has("edge_index")) {
    NpyReader array = npz.open("edge_index");
    read_pairs(array, edges, notes);
  } else {
    edges.src = read_ids(npz.open("src"));
    edges.dst = read_ids(npz.open("dst"));
    if (edges.src.size() != edges.dst.size()) throw UserError(npz.name(), "src and dst differ in length");
  }
  if (npz.has("edge_weight")) read_edge_weight(npz.open("edge_weight"), edges);
  if (npz.has("edge_type")) read_edge_type(npz.open("edge_type"), edges);
  return edges;
}

// The stated count, or the rows of what has one row per vertex, or the largest id + 1.
int64_t vertex_count(const NpzFile& npz, const EdgeList& edges, const LoadOptions& options) {
  int64_t stated = npz.has("num_nodes") ? npz.open("num_nodes").scalar_i64() : 0;
  if (npz.has("num_nodes") && (stated < 1 || stated > kMaxNodeId + 1)) {
    throw UserError(npz.name(), "num_nodes is " + std::to_string(stated), "give the number of vertices");
  }
  if (options.num_nodes > 0 && stated > 0 && stated != options.num_nodes) {
    throw UserError(
        npz.name(),
        "num_nodes is " + human_count(stated) + ", but " + human_count(options.num_nodes) + " was asked for",
        "leave the option out");
  }
  if (options.num_nodes > 0) return options.num_nodes;
  int64_t rows = 0;
  for (const char* key : {"x", "y", "train_mask"}) {
    if (!npz.has(key)) continue;
    const NpyReader array = npz.open(key);
    // An array without elements may claim any number of rows.
    if (!array.shape().empty() && array.header().count > 0) rows = std::max(rows, array.shape()[0]);
  }
  const int64_t count = stated > 0 ? stated : rows > 0 ? rows : largest_id(edges) + 1;
  check_vertex_count(count, std::max(rows, static_cast<int64_t>(edges.src.size())), npz.name());
  return count;
}

void note_unknown(const NpzFile& npz, std::vector<std::string>& notes) {
  std::string unknown;
  for (const std::string& key : npz.keys()) {
    if (std::find(kKnownKeys.begin(), kKnownKeys.end(), key) != kKnownKeys.end()) continue;
    unknown += (unknown.empty() ? "" : ", ") + key;
  }
  if (!unknown.empty()) notes.push_back("arrays that were not used: " + unknown);
}

}  // namespace

std::vector<std::string> NpzFile::keys() const {
  std::vector<std::string> keys;
  for (const ZipEntry& entry : archive_.entries()) {
    keys.push_back(entry.name.ends_with(".npy") ? entry.name.substr(0, entry.name.size() - 4) : entry.name);
  }
  return keys;
}

std::string NpzFile::key_list() const {
  constexpr size_t shown = 20;
  const std::vector<std::string> all = keys();
  std::string list;
  for (size_t i = 0; i < std::min(shown, all.size()); ++i) list += (i == 0 ? "" : ", ") + all[i].substr(0, 60);
  if (all.size() > shown) list += " and " + std::to_string(all.size() - shown) + " more";
  return list.empty() ? "none" : list;
}

NpyReader NpzFile::open(const std::string& key) const {
  const ZipEntry* entry = archive_.find(key + ".npy");
  if (entry == nullptr) throw UserError(name(), "has no array '" + key + "' (arrays found: " + key_list() + ")");
  return {archive_.open(*entry), entry->size, name() + "[" + key + "]", archive_.file()};
}

Dataset read_npz(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options) {
  const NpzFile npz(file);
  require_edges(npz);
  Dataset data;
  EdgeList edges = read_edges(npz, data.notes);
  edges.num_nodes = vertex_count(npz, edges, options);
  data.graph = build_graph(std::move(edges), npz.name());
  if (npz.has("x")) data.features = features_from(npz.open("x"));
  if (npz.has("y")) labels_from(npz.open("y"), data);
  data.splits = splits_from(npz, data.num_nodes());
  note_unknown(npz, data.notes);
  return data;
}

}  // namespace nacre

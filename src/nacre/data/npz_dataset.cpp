#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/interactions.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npy_edges.h"
#include "nacre/data/npz.h"

namespace nacre {
namespace {

constexpr std::array kKnownKeys = {"edge_index", "src",         "dst",       "x",          "y",        "train_idx",
                                   "val_idx",    "test_idx",    "valid_idx", "train_mask", "val_mask", "test_mask",
                                   "valid_mask", "edge_weight", "edge_type", "num_nodes"};
constexpr std::array kKindKeys = {"node_types",      "node_offsets",  "relation_name",  "relation_src",
                                  "relation_dst",    "num_classes",   "val_edge_index", "val_edge_type",
                                  "test_edge_index", "test_edge_type"};

void require_edges(const NpzFile& npz) {
  if (npz.has("edge_index") || (npz.has("src") && npz.has("dst"))) return;
  const std::vector<std::string> keys = npz.keys();
  if (std::any_of(keys.begin(), keys.end(), [](const std::string& k) { return k.ends_with("data.pkl"); })) {
    throw UserError(npz.name(), "is a PyTorch file, which only Python can read safely",
                    "save its tensors with numpy.savez: edge_index, x, y, train_idx, val_idx, test_idx");
  }
  throw UserError(npz.name(),
                  "has no edge_index in its directory at byte " + std::to_string(npz.directory_offset()) +
                      " (arrays found: " + npz.key_list() + ")",
                  "save the edges as edge_index [2, E], or as src and dst");
}

EdgeList read_edges(const NpzFile& npz, std::vector<std::string>& notes) {
  EdgeList edges;
  if (npz.has("edge_index")) {
    edges = pairs_from(npz.open("edge_index"), PairLayout::guess, notes);
  } else {
    edges.src = node_ids_from(npz.open("src"));
    edges.dst = node_ids_from(npz.open("dst"));
    if (edges.src.size() != edges.dst.size())
      throw UserError(npz.name(), "src and dst differ in length: src ends after entry " +
                                      std::to_string(edges.src.size()) + ", dst after entry " +
                                      std::to_string(edges.dst.size()));
  }
  if (npz.has("edge_weight")) edge_weight_from(npz.open("edge_weight"), edges);
  if (npz.has("edge_type")) edge_type_from(npz.open("edge_type"), edges);
  return edges;
}

// Reads train_user, train_item, test_user, test_item, and num_users and num_items, which are needed
// if the last users or items have no pair.
Dataset read_interactions(const NpzFile& npz) {
  Interactions parts[2];
  constexpr const char* names[] = {"train", "test"};
  for (size_t i = 0; i < 2; ++i) {
    const std::string user = std::string(names[i]) + "_user";
    const std::string item = std::string(names[i]) + "_item";
    if (i == 1 && !npz.has(user)) continue;
    parts[i].user = node_ids_from(npz.open(user));
    parts[i].item = node_ids_from(npz.open(item));
    if (parts[i].user.size() != parts[i].item.size())
      throw UserError(npz.name(), user + " and " + item + " differ in length: the first ends after entry " +
                                      std::to_string(parts[i].user.size()) + ", " + item + " after entry " +
                                      std::to_string(parts[i].item.size()));
    for (const NodeId id : parts[i].user) parts[i].num_users = std::max<int64_t>(parts[i].num_users, int64_t{id} + 1);
    for (const NodeId id : parts[i].item) parts[i].num_items = std::max<int64_t>(parts[i].num_items, int64_t{id} + 1);
  }
  if (npz.has("num_users")) parts[0].num_users = std::max(parts[0].num_users, npz.open("num_users").scalar_i64());
  if (npz.has("num_items")) parts[0].num_items = std::max(parts[0].num_items, npz.open("num_items").scalar_i64());
  return interactions_dataset(std::move(parts[0]), std::move(parts[1]), npz.name() + "[train_user] entry 0");
}

// Returns the stated number of vertices, or the number of rows of an array with one row per vertex,
// or the largest id + 1. `ends` computes the largest id only if that is needed.
struct EdgeEnds {
  int64_t edges;
  std::function<int64_t()> largest;
};
int64_t vertex_count(const NpzFile& npz, const EdgeEnds& ends, const LoadOptions& options) {
  int64_t stated = npz.has("num_nodes") ? npz.open("num_nodes").scalar_i64() : 0;
  if (npz.has("num_nodes") && (stated < 1 || stated > kMaxNodeId + 1)) {
    throw UserError(npz.name() + "[num_nodes] entry 0",
                    "is " + std::to_string(stated) + ", which cannot be the number of nodes",
                    "give the number of nodes");
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
  const int64_t count = stated > 0 ? stated : rows > 0 ? rows : ends.largest() + 1;
  check_vertex_count(count, std::max(rows, ends.edges), npz.name());
  return count;
}

void read_labels(const NpzFile& npz, Dataset& data) {
  if (npz.has("y")) labels_from(npz.open("y"), data);
  if (npz.has("num_classes") && !data.labels.empty())
    data.num_classes = std::max(data.num_classes, npz.open("num_classes").scalar_i64());
}

void read_kinds(const NpzFile& npz, Dataset& data) {
  if (!npz.has("node_types")) return;
  data.node_types = npz.words("node_types");
  const auto numbers = [&](const char* key) {
    const Buffer<int64_t> values = npz.open(key).to_i64(NanAs::error);
    return std::vector<int64_t>(values.data(), values.data() + values.size());
  };
  data.node_offsets = numbers("node_offsets");
  const std::vector<std::string> names = npz.words("relation_name");
  const std::vector<int64_t> src = numbers("relation_src");
  const std::vector<int64_t> dst = numbers("relation_dst");
  for (size_t r = 0; r < names.size(); ++r) {
    const auto kind = [&](const std::vector<int64_t>& kinds) {
      const bool known = r < kinds.size() && kinds[r] >= 0 && kinds[r] < static_cast<int64_t>(data.node_types.size());
      if (!known)
        throw UserError(npz.name() + "[relation_name] entry " + std::to_string(r),
                        "leads from or to a kind of node that does not exist");
      return static_cast<int>(kinds[r]);
    };
    data.relations.push_back({kind(src), names[r], kind(dst)});
  }
  for (size_t k = 0; k < data.node_types.size(); ++k) {
    const std::string key = kind_key(data.node_types[k]);
    if (!npz.has(key)) continue;
    data.type_features.resize(data.node_types.size());
    data.origins.type_features.resize(data.node_types.size());
    data.type_features[k] = features_from(npz.open(key));
    data.origins.type_features[k] = {npz.name() + "[" + key + "]"};
  }
}

HeldOutEdges read_held_out(const NpzFile& npz, const std::string& part, std::vector<std::string>& notes) {
  if (!npz.has(part + "_edge_index")) return {};
  EdgeList edges = pairs_from(npz.open(part + "_edge_index"), PairLayout::two_rows, notes);
  if (npz.has(part + "_edge_type")) edge_type_from(npz.open(part + "_edge_type"), edges);
  return {std::move(edges.src), std::move(edges.dst), std::move(edges.type)};
}

void note_unknown(const NpzFile& npz, const Dataset& data, std::vector<std::string>& notes) {
  std::string unknown;
  for (const std::string& key : npz.keys()) {
    const auto is_of = [&](const std::string& kind) { return key == kind_key(kind); };
    if (std::any_of(data.node_types.begin(), data.node_types.end(), is_of)) continue;
    if (std::find(kKnownKeys.begin(), kKnownKeys.end(), key) != kKnownKeys.end()) continue;
    if (std::find(kKindKeys.begin(), kKindKeys.end(), key) != kKindKeys.end()) continue;
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
  if (entry == nullptr)
    throw UserError(name(), "has no array '" + key + "' in its directory at byte " +
                                std::to_string(archive_.directory_offset()) + " (arrays found: " + key_list() + ")");
  return {archive_.open(*entry), entry->size, name() + "[" + key + "]", archive_.file()};
}

std::unique_ptr<ByteStream> NpzFile::bytes(const std::string& key) const {
  const ZipEntry* entry = archive_.find(key + ".npy");
  NACRE_CHECK(entry != nullptr, "the archive has no array '" + key + "'");
  return archive_.open(*entry);
}

std::string NpzFile::text(const std::string& key) const {
  const ZipEntry* entry = archive_.find(key + ".npy");
  constexpr int64_t most = 4096;
  if (entry == nullptr || entry->size > most)
    throw UserError(name() + "[" + key + "] at byte 0", "is not a short string");
  std::string bytes(static_cast<size_t>(entry->size), '\0');
  archive_.open(*entry)->read(bytes.data(), entry->size);
  const size_t header = bytes.find('\n');  // short headers have a line break only at their end
  if (!bytes.starts_with("\x93NUMPY") || header == std::string::npos)
    throw UserError(name() + "[" + key + "] at byte 0", "is not a short string");
  bytes.erase(0, header + 1);
  std::erase(bytes, '\0');
  return bytes;
}

std::vector<std::string> NpzFile::words(const std::string& key) const {
  const ZipEntry* entry = archive_.find(key + ".npy");
  constexpr int64_t most = 64 << 20;
  const auto refuse = [&] {
    throw UserError(name() + "[" + key + "] at byte 0", "is no array of byte strings", "save it as dtype S");
  };
  if (entry == nullptr || entry->size > most) refuse();
  std::string bytes(static_cast<size_t>(entry->size), '\0');
  archive_.open(*entry)->read(bytes.data(), entry->size);
  const size_t end = bytes.find('\n');
  const size_t type = bytes.find("'|S");
  size_t width = 0;
  if (!bytes.starts_with("\x93NUMPY") || end == std::string::npos || type > end) refuse();
  std::from_chars(bytes.data() + type + 3, bytes.data() + end, width);
  if (width == 0 || (bytes.size() - end - 1) % width != 0) refuse();
  std::vector<std::string> words;
  for (size_t at = end + 1; at < bytes.size(); at += width) {
    words.push_back(bytes.substr(at, width));
    words.back().resize(std::min(words.back().size(), words.back().find('\0')));
  }
  return words;
}

std::string kind_key(const std::string& kind) { return "x_" + kind; }

Dataset read_npz(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options) {
  const NpzFile npz(file);
  if (npz.has("train_user") && npz.has("train_item")) return read_interactions(npz);
  require_edges(npz);
  Dataset data;
  EdgeList edges = read_edges(npz, data.notes);
  edges.num_nodes =
      vertex_count(npz, {static_cast<int64_t>(edges.src.size()), [&] { return largest_id(edges); }}, options);
  // The number of edge types comes from the names of the relations, because the last relations may
  // have no edges.
  if (npz.has("relation_name"))
    edges.num_types = std::max(edges.num_types, static_cast<int>(npz.words("relation_name").size()));
  data.graph = graph_from(std::move(edges), npz.name());
  data.origins.graph = {npz.name(), "edge"};
  if (npz.has("x")) set_features(npz.open("x"), data);
  read_labels(npz, data);
  splits_from(npz, data.num_nodes(), data);
  read_kinds(npz, data);
  data.val_edges = read_held_out(npz, "val", data.notes);
  data.test_edges = read_held_out(npz, "test", data.notes);
  note_unknown(npz, data, data.notes);
  return data;
}

std::optional<DatasetBuilder> open_npz_parts(const std::shared_ptr<const MappedFile>& file,
                                             const LoadOptions& options) {
  const NpzFile npz(file);
  for (const char* key :
       {"train_user", "edge_weight", "edge_type", "node_types", "val_edge_index", "test_edge_index"}) {
    if (npz.has(key)) return std::nullopt;
  }
  if (!npz.has("edge_index") || npz.open("edge_index").is_float()) return std::nullopt;
  EdgeInput edges = npz_edges(npz, "edge_index", PairLayout::guess);
  const auto largest = [&] {
    const LargestEnds ends = largest_ends(edges);
    return std::max(ends.src, ends.dst);
  };
  DatasetBuilder builder(npz.name());
  const int type = builder.add_type("node", vertex_count(npz, {edges.at_most, largest}, options));
  builder.data.notes = edges.open()->notes();
  builder.add_edges({type, "edge", type}, std::move(edges));
  if (npz.has("x")) builder.set_features(type, npz_features(npz, "x"));
  note_unknown(npz, builder.data, builder.data.notes);
  builder.later(type, [npz](DatasetBuilder& b) {
    read_labels(npz, b.data);
    splits_from(npz, b.num_nodes(), b.data);
  });
  return builder;
}

}  // namespace nacre

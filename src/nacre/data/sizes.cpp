#include "nacre/data/sizes.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "nacre/base/error.h"
#include "nacre/data/made_features.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/native.h"
#include "nacre/data/npz.h"
#include "nacre/data/sizes_parts.h"
#include "nacre/data/twin_plan.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTwin = "twin:";
// Estimated bytes for the name of a node, and for what refers to it.
constexpr int64_t kNameBytes = 64;

int64_t file_bytes(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

DataSizes twin_sizes(std::string_view name, uint64_t seed, bool features) {
  const TwinPlan plan = plan_twin(name, seed);
  const TwinSpec& spec = *plan.spec;
  DataSizes s;
  s.graph = {plan.num_nodes, plan.num_edges, false, spec.num_edge_types > 1};
  s.edge_types = spec.num_edge_types;
  s.features = features ? spec.num_features : 0;
  s.classes = spec.num_classes;
  s.multilabel = spec.multilabel;
  s.feature_bytes = plan.num_nodes * s.features * 4;
  s.label_bytes = plan.num_nodes * ((spec.multilabel ? spec.num_classes : 4) + 8);
  s.reading = twin_peak_bytes(plan, features);
  complete_sizes(s, 0);
  return s;
}

DataSizes native_sizes(const std::shared_ptr<const MappedFile>& file) {
  DataSizes s;
  int64_t in_memory = 0;
  for (const NativeSection& section : native_contents(file).sections) {
    const int64_t rows = section.shape.empty() ? 0 : section.shape[0];
    const std::string& name = section.name;
    if (name == "row_ptr") s.graph.nodes = rows - 1;
    if (name == "col_idx") s.graph.edges = rows;
    if (name == "edge_weight") s.graph.weighted = rows > 0;
    if (name == "edge_type") s.graph.typed = rows > 0;
    if (name == "kinds") s.heterogeneous = true;
    if (name == "targets" && section.shape.size() > 1) {
      s.multilabel = true;
      s.classes = section.shape[1];
    }
    if (name == "scalars" && section.bytes >= 24) {
      const auto* scalars = reinterpret_cast<const int64_t*>(file->bytes().data() + section.offset);
      s.edge_types = static_cast<int>(std::clamp<int64_t>(scalars[1], 1, 65535));
      s.classes = std::max(s.classes, scalars[2]);
    }
    if (name.starts_with("features") && section.shape.size() > 1) {
      const int64_t as_f32 = rows * section.shape[1] * 4;
      s.feature_bytes += as_f32;
      if (name == "features") s.features = section.shape[1];
      if (section.element != native::Element::f32) in_memory += as_f32;
    } else if (name == "node_names") {
      in_memory += section.bytes + rows * kNameBytes;
    } else if (name != "row_ptr" && name != "col_idx" && name != "edge_weight" && name != "edge_type") {
      s.label_bytes += section.bytes;
    }
  }
  s.mapped = file->size();
  s.held = in_memory;
  // The last term is for checking that splits do not overlap.
  s.reading = s.mapped + in_memory + s.graph.nodes * 8;
  return s;
}

// Returns the sizes of pairs of users and items. The pairs become edges both ways, with a type for
// each direction.
DataSizes pair_sizes(const NpzFile& npz, int64_t file_bytes) {
  DataSizes s;
  s.heterogeneous = s.users_and_items = true;
  const int64_t pairs = npz.open("train_user").header().count;
  const int64_t held_out = npz.has("test_user") ? npz.open("test_user").header().count : 0;
  s.exact = npz.has("num_users") && npz.has("num_items");
  s.graph = {s.exact ? npz.open("num_users").scalar_i64() + npz.open("num_items").scalar_i64() : 2 * pairs, 2 * pairs,
             false, true};
  s.edge_types = 2;
  s.label_bytes = held_out * 8;
  s.reading = file_bytes + pairs * 8 + s.label_bytes + build_graph_bytes(s.graph);
  complete_sizes(s, file_bytes);
  return s;
}

std::optional<DataSizes> npz_sizes(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options) {
  const NpzFile npz(file);
  if (npz.has("train_user")) return pair_sizes(npz, file->size());
  if (!npz.has("edge_index") && !npz.has("src")) return std::nullopt;
  const auto header = [&](const std::string& key) { return npz.open(key).header(); };
  DataSizes s;
  int64_t rows = 0;
  for (const std::string& key : npz.keys()) {
    if (key.find('/') != std::string::npos) continue;
    const bool features = key == "x" || key.starts_with("x_");
    const bool edges = key == "edge_index" || key == "src" || key == "dst" || key.starts_with("edge_");
    if (key == "relation_name" || key == "node_types") {
      s.heterogeneous = true;
      continue;
    }
    const NpyHeader h = header(key);
    if (features && h.shape.size() == 2) {
      s.feature_bytes += h.count * 4;
      if (key == "x") s.features = h.shape[1];
    } else if (!edges) {
      s.label_bytes += h.count * 8;
    }
    if (key == "y" && h.shape.size() == 2 && h.shape[1] > 1) {
      s.multilabel = true;
      s.classes = h.shape[1];
    }
    if ((key == "x" || key == "y" || key == "train_mask") && !h.shape.empty() && h.count > 0)
      rows = std::max(rows, h.shape[0]);
  }
  s.graph.edges = npz.has("edge_index") ? header("edge_index").count / 2 : header("src").count;
  s.graph.weighted = npz.has("edge_weight");
  s.graph.typed = npz.has("edge_type");
  s.exact = options.num_nodes > 0 || rows > 0 || npz.has("num_nodes");
  s.graph.nodes = options.num_nodes > 0  ? options.num_nodes
                  : npz.has("num_nodes") ? npz.open("num_nodes").scalar_i64()
                  : rows > 0             ? rows
                                         : std::min<int64_t>(2 * s.graph.edges, INT64_C(0xFFFFFFFF));
  s.reading = file->size() + build_graph_bytes(s.graph);
  complete_sizes(s, file->size());
  return s;
}

// Adds the sizes of --features, --labels and --splits.
void add_node_files(const LoadOptions& options, DataSizes& s) {
  int64_t sources = 0;
  const std::string& path = options.features_file;
  if (!path.empty() && !is_made_features(path) && file_bytes(path) > 0) {
    const auto file = MappedFile::open(path);
    sources += file->size();
    if (path.ends_with(".npy")) {
      const NpyHeader h = NpyReader(file).header();
      s.feature_bytes = h.count * 4;
      s.features = h.shape.size() == 2 ? h.shape[1] : 1;
    } else if (path.ends_with(".npz")) {
      s.feature_bytes = file->size();
      s.exact = false;
    } else {
      const TextGuess text = guess_text(file);
      s.features = text.columns;
      s.feature_bytes = text.lines * text.columns * 4;
      s.exact = false;
    }
    s.held += s.feature_bytes;
  }
  for (const std::string& other : {options.labels_file, options.splits_file}) {
    if (other.empty()) continue;
    sources += file_bytes(other);
    s.label_bytes += 8 * file_bytes(other);
    s.held += 8 * file_bytes(other);
  }
  s.reading = std::max(s.reading, s.mapped + s.held + sources);
}

// Counts the features that are made from the graph once it has been read. The data's own features
// are read before that and freed again, unless they lie in a mapped file.
void replace_features(const std::string& made, DataSizes& s) {
  const int64_t width = made_features_width(made, s.graph.nodes);
  const int64_t bytes = s.graph.nodes * width * 4;
  const int64_t degrees = made == "degree" ? s.graph.nodes * 8 : 0;
  s.reading = std::max(s.reading, s.mapped + s.held + bytes + degrees);
  if (s.mapped == 0) s.held -= s.feature_bytes;
  s.held += bytes;
  s.feature_bytes = bytes;
  s.features = width;
}

// Returns the number of rows of the file of --features, which is the number of nodes; 0 if the
// header of the file does not tell it.
int64_t feature_rows(const std::string& path) {
  if (!path.ends_with(".npy") || file_bytes(path) == 0) return 0;
  const NpyHeader header = NpyReader(MappedFile::open(path)).header();
  return header.shape.empty() || header.count == 0 ? 0 : header.shape[0];
}

std::optional<DataSizes> place_sizes(const std::string& path, LoadOptions options) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) && !fs::is_directory(path, error)) return std::nullopt;
  if (options.num_nodes == 0) options.num_nodes = feature_rows(options.features_file);
  const DataSource source(path);
  const Choice choice = choose_format(source, options.format);
  const std::string_view name = choice.format->name;
  if (name == "nacre") return native_sizes(source.file());
  if (name == "npz") return npz_sizes(source.file(), options);
  if (name == "edges" || name == "snap" || name == "names" || name == "mtx")
    return edge_text_sizes(name, source.file(), options);
  if (name == "saint") return saint_sizes(source);
  if (choice.format->open != nullptr) {
    if (const auto builder = choice.format->open(source, choice.variant, options))
      return builder_sizes(*builder, bytes_of(source));
  }
  return byte_sizes(source);
}

}  // namespace

void complete_sizes(DataSizes& s, int64_t sources) {
  s.held += s.graph.bytes() + s.feature_bytes + s.label_bytes;
  s.reading = std::max(s.reading, sources + s.held);
}

std::optional<DataSizes> data_sizes(const std::string& spec, const LoadOptions& options) {
  const bool twin = spec.starts_with(kTwin);
  std::optional<DataSizes> sizes;
  try {
    if (twin) {
      sizes = twin_sizes(std::string_view(spec).substr(kTwin.size()), options.seed,
                         !is_made_features(options.features_file));
    } else {
      sizes = place_sizes(spec, options);
    }
    if (!sizes) return sizes;
    add_node_files(options, *sizes);
  } catch (const UserError&) {
    return std::nullopt;  // reading the data set will report what is wrong
  }
  if (options.undirected) {
    const int64_t before = sizes->graph.bytes();
    sizes->reading = std::max(sizes->reading, sizes->mapped + sizes->held + make_undirected_bytes(sizes->graph));
    sizes->graph.edges *= 2;
    sizes->held += sizes->graph.bytes() - (sizes->mapped > 0 ? 0 : before);
    sizes->exact = false;
  }
  if (is_made_features(options.features_file) && sizes->counted) replace_features(options.features_file, *sizes);
  return sizes;
}

DataSizes data_sizes(const Dataset& d) {
  DataSizes s;
  s.graph = {d.graph.num_nodes(), d.graph.num_edges(), d.graph.weighted(), d.graph.typed()};
  s.edge_types = d.graph.num_edge_types();
  s.features = d.num_features();
  s.classes = d.num_classes;
  s.multilabel = d.multilabel();
  s.heterogeneous = d.heterogeneous();
  s.feature_bytes = d.features.defined() ? d.features.bytes() : 0;
  for (const Tensor& x : d.type_features) s.feature_bytes += x.defined() ? x.bytes() : 0;
  s.label_bytes = d.bytes() - s.graph.bytes() - s.feature_bytes;
  s.held = d.bytes();
  return s;
}

}  // namespace nacre

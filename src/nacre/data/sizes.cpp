#include "nacre/data/sizes.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "nacre/base/error.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/native.h"
#include "nacre/data/npz.h"
#include "nacre/data/twin_plan.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTwin = "twin:";
// The number of bytes at the beginning of a text that its sizes are estimated from.
constexpr int64_t kLookedAt = 256 << 10;
// Columns of an edge list grow by doubling, so the old and the new memory exist together for a
// moment.
constexpr int64_t kGrowing = 3;
// Estimated bytes for an id in a text file that names nodes by words, and for what refers to it.
constexpr int64_t kNameBytes = 64;

int64_t file_bytes(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

void finish(DataSizes& s, int64_t sources) {
  s.held += s.graph.bytes() + s.feature_bytes + s.label_bytes;
  s.reading = std::max(s.reading, sources + s.held);
}

DataSizes twin_sizes(std::string_view name, uint64_t seed) {
  const TwinPlan plan = plan_twin(name, seed);
  const TwinSpec& spec = *plan.spec;
  DataSizes s;
  s.graph = {plan.num_nodes, plan.num_edges, false, spec.num_edge_types > 1};
  s.edge_types = spec.num_edge_types;
  s.features = spec.num_features;
  s.classes = spec.num_classes;
  s.multilabel = spec.multilabel;
  s.feature_bytes = plan.num_nodes * spec.num_features * 4;
  s.label_bytes = plan.num_nodes * ((spec.multilabel ? spec.num_classes : 4) + 8);
  s.reading = twin_peak_bytes(plan);
  finish(s, 0);
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
      const int64_t wide = rows * section.shape[1] * 4;
      s.feature_bytes += wide;
      if (name == "features") s.features = section.shape[1];
      if (section.element != native::Element::f32) in_memory += wide;
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

std::optional<DataSizes> npz_sizes(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options) {
  const NpzFile npz(file);
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
  finish(s, file->size());
  return s;
}

// The number of lines of a text and of values per line, estimated from its beginning.
struct TextGuess {
  int64_t lines = 0;
  int64_t columns = 0;
};

TextGuess guess_text(const std::shared_ptr<const MappedFile>& file) {
  const int64_t looked = std::min(file->size(), kLookedAt);
  int64_t lines = 0, values = 0;
  bool inside = false;
  for (int64_t i = 0; i < looked; ++i) {
    const char c = static_cast<char>(file->bytes()[static_cast<size_t>(i)]);
    lines += c == '\n' ? 1 : 0;
    const bool value = c != '\n' && c != ' ' && c != '\t' && c != ',' && c != ';' && c != '\r';
    values += value && !inside ? 1 : 0;
    inside = value;
  }
  lines = std::max<int64_t>(1, lines);
  const double share = looked == 0 ? 0 : static_cast<double>(file->size()) / static_cast<double>(looked);
  return {static_cast<int64_t>(share * static_cast<double>(lines)) + 1, (values + lines - 1) / lines};
}

std::optional<DataSizes> edge_list_sizes(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options) {
  // A gzipped file tells its length only at its end.
  if (file->starts_with("\x1f\x8b")) return std::nullopt;
  const TextGuess text = guess_text(file);
  DataSizes s;
  s.exact = false;
  s.graph.edges = text.lines;
  s.graph.weighted = text.columns > 2;
  s.graph.typed = text.columns > 3;
  s.graph.nodes = options.num_nodes > 0 ? options.num_nodes : std::min<int64_t>(text.lines, INT64_C(0xFFFFFFFF));
  const int64_t columns = 8 + (s.graph.weighted ? 4 : 0) + (s.graph.typed ? 2 : 0);
  s.reading = file->size() + std::max(build_graph_bytes(s.graph), s.graph.edges * columns * kGrowing);
  finish(s, file->size());
  return s;
}

// Adds the sizes of --features, --labels and --splits.
void add_node_files(const LoadOptions& options, DataSizes& s) {
  int64_t sources = 0;
  if (const std::string& path = options.features_file; !path.empty() && file_bytes(path) > 0) {
    const auto file = MappedFile::open(path);
    sources += file->size();
    if (path.ends_with(".npy")) {
      const NpyHeader h = NpyReader(file).header();
      s.feature_bytes = h.count * 4;
      s.features = h.shape.size() == 2 ? h.shape[1] : 1;
      if (!h.shape.empty() && options.num_nodes == 0) s.graph.nodes = std::max(s.graph.nodes, h.shape[0]);
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
  for (const std::string& path : {options.labels_file, options.splits_file}) {
    if (path.empty()) continue;
    sources += file_bytes(path);
    s.label_bytes += 8 * file_bytes(path);
    s.held += 8 * file_bytes(path);
  }
  s.reading = std::max(s.reading, s.mapped + s.held + sources);
}

std::optional<DataSizes> place_sizes(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const Place place(path);
  const Choice choice = choose_format(place, options.format);
  const std::string_view name = choice.format->name;
  if (name == "nacre") return native_sizes(place.file());
  if (name == "npz") return npz_sizes(place.file(), options);
  if (name == "edges") return edge_list_sizes(place.file(), options);
  return std::nullopt;
}

}  // namespace

std::optional<DataSizes> data_sizes(const std::string& spec, const LoadOptions& options) {
  const bool twin = spec.starts_with(kTwin);
  std::optional<DataSizes> sizes;
  try {
    if (twin) {
      sizes = twin_sizes(std::string_view(spec).substr(kTwin.size()), options.seed);
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

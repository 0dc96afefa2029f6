// Data sets of a few .npz files with SciPy matrices: DGL's Reddit (reddit_data.npz and a COO
// matrix) and the benchmark sets of Shchur et al. (adj_*, attr_* and labels in one file).
#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/clean.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/formats/sparse.h"
#include "nacre/data/node_data.h"

namespace nacre {
namespace {

constexpr const char* kPlain = "reddit_graph.npz";
constexpr const char* kSelfLoop = "reddit_self_loop_graph.npz";

std::string reddit_graph_file(const DataSource& source, const std::string& variant) {
  if (variant == "plain") return kPlain;
  if (variant == "self_loop") return kSelfLoop;
  if (!variant.empty()) throw UserError("--format", "unknown graph '" + variant + "'", "choose plain or self_loop");
  return source.has(kPlain) || !source.has(kSelfLoop) ? kPlain : kSelfLoop;
}

// Reads splits from node_types, which holds 1, 2 and 3 for train, val and test.
Splits splits_by_number(NpyReader array) {
  std::vector<NodeId> parts[3];
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] > 3)
        throw UserError(
            array.where() + " entry " + std::to_string(first + static_cast<int64_t>(i)),
            "holds " + std::to_string(values[i]) + "; only 0 (no split), 1 (train), 2 (val) and 3 (test) exist");
      if (values[i] > 0) parts[values[i] - 1].push_back(static_cast<NodeId>(first + static_cast<int64_t>(i)));
    }
  });
  return {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

std::string recognise_dgl_reddit(const DataSource& source) {
  return source.has("reddit_data.npz") ? "holds reddit_data.npz" : "";
}

Dataset load_dgl_reddit(const DataSource& source, const std::string& variant, const LoadOptions&) {
  Dataset data;
  const NpzFile attributes(source.open("reddit_data.npz"));
  set_features(attributes.open("feature"), data);
  labels_from(attributes.open("label"), data);
  data.splits = splits_by_number(attributes.open("node_types"));
  data.origins.train = {attributes.name() + "[node_types]", "entry", {}, true};
  data.origins.val = data.origins.test = data.origins.train;
  const std::string file = reddit_graph_file(source, variant);
  const NpzFile adjacency(source.open(file));
  EdgeList edges = sparse_from(adjacency, "").edges();
  check_vertex_count(edges.num_nodes, std::max<int64_t>(data.features.rows(), edges.src.size()),
                     adjacency.name() + "[shape] entry 0");
  data.graph = graph_from(std::move(edges), adjacency.name());
  data.origins.graph = {adjacency.name(), "entry"};
  data.notes.push_back("edges from " + file);
  return data;
}

std::string recognise_shchur(const DataSource& source) {
  if (source.is_folder() || !source.file()->starts_with("PK")) return "";
  try {
    const NpzFile npz(source.file());
    return npz.has("adj_indptr") && npz.has("adj_indices") ? "holds adj_indptr and adj_indices" : "";
  } catch (const UserError&) {  // the actual reader will report the damage
    return "";
  }
}

Dataset load_shchur(const DataSource& source, const std::string&, const LoadOptions&) {
  Dataset data;
  const NpzFile npz(source.file());
  SparseMatrix adjacency = sparse_from(npz, "adj_");
  if (npz.has("attr_indptr")) {
    data.features = sparse_from(npz, "attr_").dense(source.file()->size(), npz.name() + "[attr_shape]");
    data.origins.features = {npz.name() + "[attr_data]"};
  } else if (npz.has("attr_matrix")) {
    set_features(npz.open("attr_matrix"), data);
  }
  if (npz.has("labels")) labels_from(npz.open("labels"), data);
  EdgeList edges = std::move(adjacency).edges();
  check_vertex_count(edges.num_nodes, static_cast<int64_t>(edges.src.size()) + data.labels.size(),
                     npz.name() + "[adj_shape] entry 0");
  const Graph stored = graph_from(std::move(edges), npz.name());
  data.origins.graph = {npz.name(), "entry"};
  data.graph = cleaned(make_undirected(stored), {.drop_loops = true});
  data.notes.push_back("made undirected and freed of self loops, as these benchmarks are used: " +
                       human_count(stored.num_edges()) + " stored edges became " + human_count(data.graph.num_edges()));
  data.notes.emplace_back("these files hold no splits; give one with --splits");
  return data;
}

}  // namespace

std::vector<Format> formats_in_small_archives() {
  return {{"dgl-reddit", "DGL's Reddit", recognise_dgl_reddit, load_dgl_reddit, "the graph: plain or self_loop"},
          {"shchur", "one .npz: adj_data, attr_data, labels, …", recognise_shchur, load_shchur}};
}

}  // namespace nacre

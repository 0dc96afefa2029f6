#include "nacre/train/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "nacre/base/error.h"
#include "nacre/train/row_sums.h"

namespace nacre {
namespace {

bool has_features(const Dataset& d, size_t kind) {
  return kind < d.type_features.size() && d.type_features[kind].defined() && d.type_features[kind].row_size() > 0;
}

int64_t vertices_of(const Dataset& d, size_t kind) { return d.node_offsets[kind + 1] - d.node_offsets[kind]; }

// Returns the kind's name with '_' for every character that is no letter, digit or '-', and with a
// number behind it if one of the kinds `before` has the same name.
std::string unique_name(const std::string& name, size_t kind, const std::vector<VertexKind>& before) {
  std::string fit = name.empty() ? "kind" : name;
  for (char& c : fit) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  const auto taken = [&] {
    return std::any_of(before.begin(), before.end(), [&](const VertexKind& k) { return k.name == fit; });
  };
  while (taken()) fit += "_" + std::to_string(kind);
  return fit;
}

}  // namespace

std::vector<VertexKind> vertex_kinds(const Dataset& dataset) {
  std::vector<VertexKind> kinds;
  if (dataset.features.defined()) return kinds;
  if (!dataset.heterogeneous()) return {{"node", dataset.num_nodes(), 0}};
  for (size_t k = 0; k < dataset.node_types.size(); ++k) {
    const int64_t vertices = vertices_of(dataset, k);
    if (vertices == 0) continue;
    const int64_t width = has_features(dataset, k) ? dataset.type_features[k].row_size() : 0;
    kinds.push_back({unique_name(dataset.node_types[k], k, kinds), vertices, width});
  }
  return kinds;
}

void check_trained_kinds(const std::vector<VertexKind>& trained, const std::vector<VertexKind>& here,
                         const std::string& where) {
  const auto fits = [](const VertexKind& a, const VertexKind& b) {
    return a.name == b.name && a.features == b.features && (a.features > 0 || a.vertices == b.vertices);
  };
  if (std::equal(trained.begin(), trained.end(), here.begin(), here.end(), fits)) return;
  const auto text = [](const std::vector<VertexKind>& kinds) {
    std::string list;
    for (const VertexKind& k : kinds) {
      const std::string what =
          k.features > 0 ? fmt::format("{} features", k.features) : fmt::format("{} learned rows", k.vertices);
      list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", k.name, what);
    }
    return list.empty() ? "nodes of one kind" : "the kinds " + list;
  };
  throw UserError(where, fmt::format("has {}, but the model was trained for {}", text(here), text(trained)));
}

std::string kinds_text(const std::vector<VertexKind>& kinds, int64_t width) {
  std::string projected;
  std::string learned;
  for (const VertexKind& k : kinds) {
    std::string& list = k.features > 0 ? projected : learned;
    if (!list.empty()) list += ", ";
    list += k.features > 0 ? fmt::format("{} ({} features)", k.name, k.features) : k.name;
  }
  std::string text = fmt::format("{} kinds of nodes:", kinds.size());
  if (!projected.empty()) text += fmt::format(" {} projected to {}", projected, width);
  if (!learned.empty())
    text += fmt::format("{} rows of {} numbers are learned for {}", projected.empty() ? "" : ";", width, learned);
  return text;
}

void align_classes(const std::vector<std::string>& trained, const std::string& where, Dataset& dataset) {
  if (dataset.class_names.empty() || trained.empty() || dataset.class_names == trained) return;
  std::vector<int32_t> number;
  for (const std::string& name : dataset.class_names) {
    const auto found = std::find(trained.begin(), trained.end(), name);
    if (found == trained.end())
      throw UserError(where, "has the class '" + name + "', which the model was not trained for");
    number.push_back(static_cast<int32_t>(found - trained.begin()));
  }
  std::vector<int32_t> labels(dataset.labels.begin(), dataset.labels.end());
  for (int32_t& label : labels) label = label < 0 ? label : number[label];
  dataset.labels = std::move(labels);
  dataset.class_names = trained;
  dataset.num_classes = static_cast<int64_t>(trained.size());
}

void normalize_features(Dataset& dataset, const std::string& how, std::vector<std::string>& notes) {
  if (how != "auto" && how != "row" && how != "none") {
    throw UserError("--normalize-features", "unknown way '" + how + "' to normalise features",
                    "choose auto, row or none");
  }
  const auto one = [&](Tensor& x, const std::string& of) {
    if (!divides_rows(x, how)) return;
    if (how == "auto") {
      notes.push_back(
          fmt::format("features{} look like word counts, so rows are divided by their sums (--normalize-features none "
                      "turns this off)",
                      of));
    }
    x = rows_divided_by_sum(x);
  };
  one(dataset.features, "");
  for (size_t k = 0; k < dataset.type_features.size(); ++k)
    one(dataset.type_features[k], " of " + dataset.node_types[k]);
}

std::vector<FeatureLeaf> feature_leaves(const Dataset& dataset, const std::vector<VertexKind>& kinds) {
  if (kinds.empty()) return {{"x", dataset.features}};
  std::vector<FeatureLeaf> leaves;
  size_t next = 0;
  for (size_t k = 0; k < dataset.node_types.size(); ++k) {
    if (vertices_of(dataset, k) == 0) continue;
    const VertexKind& kind = kinds[next++];
    if (kind.features > 0) leaves.push_back({"x." + kind.name, dataset.type_features[k]});
  }
  return leaves;
}

}  // namespace nacre

#include "nacre/data/convert/notes.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nacre/base/log.h"
#include "nacre/data/native_floats.h"

namespace nacre {

std::string data_set_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".gz", ".npy", ".npz", ".txt", ".csv", ".tsv", ".edges"}) {
    if (name.ends_with(ending) && name.size() > ending.size()) name.resize(name.size() - ending.size());
  }
  return name;
}

std::string conversion_json(const std::string& source, const ConvertOptions& o) {
  nlohmann::json json = {{"source", std::filesystem::path(source).filename().string()},
                         {"format", o.load.format},
                         {"undirected", o.load.undirected},
                         {"self_loops", o.self_loops},
                         {"reorder", reorder_name(o.reorder)},
                         {"feature_dtype", native::float_name(o.feature_type)}};
  if (!o.load.split.empty()) {
    json["split"] = o.load.split;
    json["split_seed"] = o.load.split_seed;
  }
  if (o.load.ignore_edge_weights) json["ignore_edge_weights"] = true;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string unused_note(int64_t unused, int64_t vertices) {
  return human_count(unused) + " of " + human_count(vertices) +
         " node ids are not used by any edge: --format snap renumbers them";
}

std::string loops_note(int64_t loops_added) {
  return "self loops were added to " + human_count(loops_added) + " nodes";
}

void add_type_note(const ConvertOptions& o, bool has_features, std::vector<std::string>& notes) {
  if (!has_features || o.feature_type == native::Element::f32) return;
  notes.push_back("features are stored as " + std::string(native::float_name(o.feature_type)) +
                  " and widened to f32 when read");
}

}  // namespace nacre

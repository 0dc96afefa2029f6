#include <map>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/model/builtin.h"
#include "nacre/model/registry.h"

namespace nacre {

ModelKnob edge_dropout_knob() {
  return {"edge-dropout", 0.0, "share of the edges dropped, drawn anew each step (NGCF's node dropout)", true};
}

namespace {

using Registry = std::map<std::string, ModelEntry>;

// Returns the registry, which is made at its first use, because models of several files register
// before main().
Registry& registry() {
  static Registry models = [] {
    Registry built_in;
    for (ModelEntry& entry : builtin_models()) {
      std::string name = entry.info.name;
      built_in.emplace(std::move(name), std::move(entry));
    }
    return built_in;
  }();
  return models;
}

}  // namespace

void register_model(ModelInfo info, BuildModel build) {
  const std::string name = info.name;
  if (name.empty()) throw UserError("model", "a model without a name was registered");
  if (!registry().emplace(name, ModelEntry{std::move(info), std::move(build)}).second) {
    throw UserError("model " + name, "registered twice", "give your model another name");
  }
}

const ModelEntry& find_model(const std::string& name) {
  const auto it = registry().find(name);
  if (it != registry().end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [key, entry] : registry()) names.push_back(key);
  throw UserError("--model", "unknown model '" + name + "'", suggest(name, names));
}

const ModelInfo& model_info(const std::string& name) { return find_model(name).info; }

std::vector<std::string> activation_names() {
  std::vector<std::string> names = {"none"};
  for (const ActivationInfo& row : activations()) names.emplace_back(row.name);
  return names;
}

std::vector<const ModelInfo*> model_list() {
  std::vector<const ModelInfo*> infos;
  for (const auto& [name, entry] : registry()) infos.push_back(&entry.info);
  return infos;
}

}  // namespace nacre

#include "nacre/model/registry.h"

#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/model/builtin.h"
#include "nacre/model/model_library.h"

namespace nacre {

ModelKnob edge_dropout_knob() {
  return {"edge-dropout", 0.0, "share of the edges dropped, drawn anew each step (NGCF's node dropout)", true};
}

namespace {

struct Registry {
  std::shared_mutex mutex;  // guards the members below
  // The list holds every entry that was ever made. A model that was replaced stays here, because
  // sessions may still refer to it.
  std::deque<ModelEntry> entries;
  std::map<std::string, const ModelEntry*> models;  // the newest entry of each name
  // The first `built_in` entries come with Nacre.
  size_t built_in = 0;
};

// Returns the registry, which is made at its first use, because models of several files register
// before main().
Registry& registry() {
  static Registry* const made = [] {
    auto* all = new Registry;
    for (ModelEntry& entry : builtin_models()) {
      all->entries.push_back(std::move(entry));
      all->models.emplace(all->entries.back().info.name, &all->entries.back());
    }
    all->built_in = all->entries.size();
    return all;
  }();
  return *made;
}

void check_name(const std::string& name) {
  if (name.empty()) throw UserError("model", "a model without a name was registered");
}

}  // namespace

void register_model(ModelInfo info, BuildModel build) {
  check_name(info.name);
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  if (all.models.contains(info.name))
    throw UserError("model " + info.name, "is registered twice", "give your model another name");
  all.entries.push_back({std::move(info), std::move(build)});
  all.models.emplace(all.entries.back().info.name, &all.entries.back());
}

void replace_model(ModelInfo info, BuildModel build) {
  check_name(info.name);
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  for (size_t i = 0; i < all.built_in; ++i) {
    if (all.entries[i].info.name == info.name)
      throw UserError("model " + info.name, "has the name of a model of Nacre", "give your model another name");
  }
  all.entries.push_back({std::move(info), std::move(build)});
  all.models[all.entries.back().info.name] = &all.entries.back();
}

std::vector<ModelEntry> registered_models() {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  std::vector<ModelEntry> added;
  for (size_t i = all.built_in; i < all.entries.size(); ++i) added.push_back(all.entries[i]);
  return added;
}

const ModelEntry& find_model(const std::string& name) {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  const auto it = all.models.find(name);
  if (it != all.models.end()) return *it->second;
  std::vector<std::string> names;
  for (const auto& [key, entry] : all.models) names.push_back(key);
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
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  for (const auto& [name, entry] : all.models) infos.push_back(&entry->info);
  return infos;
}

}  // namespace nacre

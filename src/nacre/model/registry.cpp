#include <algorithm>
#include <map>

#include "nacre/base/error.h"
#include "nacre/model/builtin.h"
#include "nacre/model/registry.h"

namespace nacre {

namespace {

using Registry = std::map<std::string, ModelEntry>;

// Made at first use, whichever file's registrar comes first.
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

// Number of letters to change, add or leave out.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string suggest(const std::string& given, const std::vector<std::string>& known) {
  std::string best, list;
  size_t best_distance = std::max<size_t>(1, given.size() / 2) + 1;
  for (const std::string& name : known) {
    list += (list.empty() ? "" : ", ") + name;
    const size_t distance = edit_distance(given, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best.empty() ? "known: " + list : "did you mean '" + best + "'? known: " + list;
}

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
  throw UserError("model", "unknown model '" + name + "'", suggest(name, names));
}

const ModelInfo& model_info(const std::string& name) { return find_model(name).info; }

std::vector<const ModelInfo*> model_list() {
  std::vector<const ModelInfo*> infos;
  for (const auto& [name, entry] : registry()) infos.push_back(&entry.info);
  return infos;
}

}  // namespace nacre

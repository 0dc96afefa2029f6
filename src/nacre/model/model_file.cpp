#include "nacre/model/model_file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/base/plugin_library.h"
#include "nacre/model/model_library.h"
#include "nacre/model/registry.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string path;
  std::string model;  // empty if the text names no model
};

bool is_model_file(const std::string& path) { return path.ends_with(".py") || path.ends_with(".so"); }

Named parts_of(const std::string& text) {
  if (is_model_file(text)) return {text, ""};
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || !is_model_file(text.substr(0, colon))) return {};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

struct Files {
  std::mutex mutex;  // guards the members below
  PythonModels python;
  // This map holds the names of the models of each opened library, by the library's path.
  std::map<std::string, std::vector<std::string>> libraries;
  std::map<std::string, std::string> origins;  // the text that names the file of each model
};

Files& files() {
  // The object is never freed, because models may be looked up until the process ends.
  static auto* all = new Files;
  return *all;
}

std::vector<std::string> open_library(const std::string& path) {
  const auto open = [&](const char* name) {
    const PluginFunction found = open_plugin_function(path, name, path);
    if (found.address == nullptr)
      throw UserError(path, "is no library of models: " + found.why,
                      "build it with nacre_model_library(), as docs/add_a_model.md describes");
    return found.address;
  };
  const auto* abi = reinterpret_cast<ModelLibraryAbi>(open(kModelLibraryAbi))();
  if (abi != model_library_abi()) {
    throw UserError(path,
                    std::string("was built for another Nacre (") + abi + ", but this is " + model_library_abi() + ")",
                    "build it again");
  }
  const auto* models = reinterpret_cast<ModelLibraryModels>(open(kModelLibraryModels))();
  std::vector<std::string> names;
  for (const ModelEntry& entry : *models) {
    register_model(entry.info, entry.build);
    names.push_back(entry.info.name);
  }
  return names;
}

std::vector<std::string> models_of_library(const std::string& path) {
  const std::string key = fs::canonical(path).string();
  Files& all = files();
  const std::lock_guard lock(all.mutex);
  const auto known = all.libraries.find(key);
  if (known != all.libraries.end()) return known->second;
  return all.libraries[key] = open_library(key);
}

std::vector<std::string> models_of_python(const std::string& path) {
  PythonModels run;
  {
    const std::lock_guard lock(files().mutex);
    run = files().python;
  }
  if (!run) {
    throw UserError(path, "is a model written in Python, which this program cannot run",
                    "train with the package: python3 -m nacre, or nacre.train()");
  }
  return run(path);
}

}  // namespace

bool names_model_file(const std::string& text) { return !parts_of(text).path.empty(); }

std::string load_model_file(const std::string& text) {
  const Named named = parts_of(text);
  std::error_code ignored;
  if (!fs::is_regular_file(named.path, ignored)) {
    throw UserError("--model", "there is no file '" + named.path + "'",
                    "name a .py or .so file of models, or a model that Nacre has");
  }
  const std::vector<std::string> models =
      named.path.ends_with(".py") ? models_of_python(named.path) : models_of_library(named.path);
  if (models.empty()) {
    throw UserError(named.path, "defines no model",
                    named.path.ends_with(".py") ? "write @nacre.model above the function that builds it"
                                                : "register it with nacre::RegisterModel");
  }
  if (named.model.empty() && models.size() > 1) {
    throw UserError(named.path, "defines the models " + listed(models),
                    "say which: --model " + named.path + ":" + models.front());
  }
  std::string model =
      named.model.empty() ? models.front() : choose_name("--model " + named.path, "model", named.model, models);
  set_file_of_model(model, named.path + ":" + model);
  return model;
}

std::string file_of_model(const std::string& model) {
  const std::lock_guard lock(files().mutex);
  const auto found = files().origins.find(model);
  return found == files().origins.end() ? "" : found->second;
}

void set_file_of_model(const std::string& model, const std::string& text) {
  const std::lock_guard lock(files().mutex);
  files().origins[model] = text;
}

void set_python_models(PythonModels run) {
  const std::lock_guard lock(files().mutex);
  files().python = std::move(run);
}

}  // namespace nacre

#include "nacre/base/plugin_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace nacre {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> places(const std::string& file, const std::string& only_place) {
  std::error_code ignored;
  if (!only_place.empty()) {
    return {fs::is_directory(only_place, ignored) ? fs::path(only_place) / file : fs::path(only_place)};
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> found;
  for (const char* place : {".", "..", "../lib", "../lib/x86_64-linux-gnu", "../lib64"}) {
    found.push_back((folder / place / file).lexically_normal());
  }
  // If this code is part of a library (the Python module), plug-ins lie beside that library.
  static const char here = 0;
  Dl_info library;
  if (dladdr(&here, &library) != 0 && library.dli_fname != nullptr)
    found.push_back(fs::absolute(library.dli_fname, ignored).parent_path() / file);
  return found;
}

}  // namespace

PluginFunction open_plugin_function(const std::string& file, const char* name, const std::string& only_place) {
  for (const fs::path& path : places(file, only_place)) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* error = dlerror();
      return {nullptr, path.string(), error != nullptr ? error : path.string() + " cannot be opened"};
    }
    void* address = dlsym(library, name);
    if (address == nullptr) return {nullptr, path.string(), path.string() + " belongs to another version of nacre"};
    return {address, path.string(), ""};
  }
  return {};
}

}  // namespace nacre

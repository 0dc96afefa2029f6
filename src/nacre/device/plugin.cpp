#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "nacre/base/file_cache.h"
#include "nacre/base/log.h"
#include "nacre/cost/profile.h"
#include "nacre/device/abi.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

struct Opened {
  DevicePlugin* plugin = nullptr;
  std::string why;
};

// NACRE_PLUGIN_PATH is the library or its folder, and then the only place. Otherwise beside the program (a build
// folder, a bundle) and where an installation puts libraries.
std::vector<fs::path> places() {
  if (const char* own = std::getenv("NACRE_PLUGIN_PATH"); own != nullptr && *own != '\0') {
    std::error_code ignored;
    return {fs::is_directory(own, ignored) ? fs::path(own) / kDevicePluginFile : fs::path(own)};
  }
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> found;
  for (const char* place : {".", "../lib", "../lib/x86_64-linux-gnu", "../lib64"}) {
    found.push_back((folder / place / kDevicePluginFile).lexically_normal());
  }
  return found;
}

Opened open_plugin() {
  for (const fs::path& path : places()) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    // Never closed: exceptions and objects of the library may live until the process ends.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* error = dlerror();
      return {nullptr, error != nullptr ? error : path.string() + " cannot be opened"};
    }
    const auto entry = reinterpret_cast<DevicePluginEntry>(dlsym(library, kDevicePluginEntry));
    DevicePlugin* plugin = entry != nullptr ? entry(kDeviceAbi) : nullptr;
    if (plugin == nullptr) return {nullptr, path.string() + " belongs to another version"};
    return {plugin, ""};
  }
  if (std::getenv("NACRE_PLUGIN_PATH") != nullptr) return {nullptr, "no CUDA plug-in at NACRE_PLUGIN_PATH"};
  return {nullptr, "this build has no CUDA plug-in (cmake --preset cuda builds it)"};
}

}  // namespace

DevicePlugin* device_plugin(std::string* why) {
  static const Opened opened = open_plugin();
  if (why != nullptr) *why = opened.why;
  return opened.plugin;
}

std::string compile_cached(DevicePlugin& plugin, const std::string& source, const std::string& name, int arch) {
  std::string folder = cache_folder();
  if (!folder.empty()) folder += "/kernels";
  const std::string key = plugin.compiler() + "\nsm_" + std::to_string(arch) + "\n" + source;
  if (auto cached = read_cached(folder, key)) return std::move(*cached);
  const double start = now_seconds();
  std::string image = plugin.compile(source, name, arch);
  log_verbose("compiled " + name + " for sm_" + std::to_string(arch) + " in " + human_seconds(now_seconds() - start));
  if (!folder.empty()) write_cached(folder, key, image);
  return image;
}

}  // namespace nacre

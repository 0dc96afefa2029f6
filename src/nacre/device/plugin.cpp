#include <atomic>
#include <cstdlib>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "nacre/base/file_cache.h"
#include "nacre/base/log.h"
#include "nacre/base/plugin_library.h"
#include "nacre/cost/profile.h"
#include "nacre/device/abi.h"

namespace nacre {
namespace {

struct Opened {
  DevicePlugin* plugin = nullptr;
  std::string why;
};

Opened open_plugin() {
  const char* place = std::getenv("NACRE_PLUGIN_PATH");
  const PluginFunction found =
      open_plugin_function(kDevicePluginFile, kDevicePluginEntry, place != nullptr ? place : "");
  if (found.address != nullptr) {
    DevicePlugin* plugin = reinterpret_cast<DevicePluginEntry>(found.address)(kDeviceAbi);
    if (plugin == nullptr) return {nullptr, found.path + " belongs to another version of nacre"};
    return {plugin, ""};
  }
  if (!found.path.empty()) return {nullptr, found.why};
  if (place != nullptr) return {nullptr, "no CUDA plug-in at NACRE_PLUGIN_PATH"};
  return {nullptr, "this build has no CUDA plug-in (cmake --preset cuda builds it)"};
}

// Returns the folder of compiled kernels, or an empty text if there is no cache folder.
std::string kernel_cache() {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/kernels";
}

std::string key_of(DevicePlugin& plugin, const std::string& source, int arch) {
  return plugin.compiler() + "\nsm_" + std::to_string(arch) + "\n" + source;
}

std::string compile_and_keep(DevicePlugin& plugin, const std::string& source, const std::string& name, int arch) {
  const double start = now_seconds();
  std::string image = plugin.compile(source, name, arch);
  log_verbose("compiled " + name + " for sm_" + std::to_string(arch) + " in " + human_seconds(now_seconds() - start));
  if (const std::string folder = kernel_cache(); !folder.empty()) {
    write_cached(folder, key_of(plugin, source, arch), image);
  }
  return image;
}

// Holds the sources that are being compiled. Ranks on several devices of one type ask for the same
// sources at the same time; each source is compiled once.
class Compilations {
 public:
  // Returns the result of make(). If another thread works on the same key, waits for its result and
  // returns that one instead of calling make().
  std::string run(const std::string& key, FunctionRef<std::string()> make) {
    std::promise<std::string> own;
    std::shared_future<std::string> result = own.get_future().share();
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      const auto [at, is_new] = running_.try_emplace(key, result);
      result = at->second;
      first = is_new;
    }
    if (!first) return result.get();
    try {
      own.set_value(make());
    } catch (...) {
      own.set_exception(std::current_exception());
    }
    {
      const std::lock_guard lock(mutex_);
      running_.erase(key);
    }
    return result.get();
  }

 private:
  std::mutex mutex_;  // guards the map
  std::map<std::string, std::shared_future<std::string>> running_;
};

Compilations& compilations() {
  static auto* all = new Compilations;  // compiling threads may outlive static objects
  return *all;
}

// Reports that a kernel in the cache is unusable. The warning comes once per process, because a
// cache with one unusable kernel often holds many.
void warn_of_kernel(const std::string& name, const std::string& why) {
  static std::atomic<bool> told{false};
  if (!told.exchange(true))
    log_warning("compiled kernels in " + kernel_cache() + " cannot be loaded and are compiled again");
  log_verbose("kernel " + name + " could not be loaded: " + why);
}

}  // namespace

DevicePlugin* device_plugin(std::string* why) {
  static const Opened opened = open_plugin();
  if (why != nullptr) *why = opened.why;
  return opened.plugin;
}

std::string compile_cached(DevicePlugin& plugin, const std::string& source, const std::string& name, int arch) {
  const std::string key = key_of(plugin, source, arch);
  return compilations().run(key, [&] {
    if (auto cached = read_cached(kernel_cache(), key)) return std::move(*cached);
    return compile_and_keep(plugin, source, name, arch);
  });
}

std::string compile_again(DevicePlugin& plugin, const std::string& source, const std::string& name, int arch) {
  drop_cached(kernel_cache(), key_of(plugin, source, arch));
  return compile_and_keep(plugin, source, name, arch);
}

DeviceFunction load_kernel(Device& device, const std::string& image, const std::string& name,
                           FunctionRef<std::string()> compile_again) {
  try {
    return device.load(image, name);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    const std::string fresh = compile_again();
    if (fresh == image) throw;
    warn_of_kernel(name, error.what());
    return device.load(fresh, name);
  }
}

}  // namespace nacre

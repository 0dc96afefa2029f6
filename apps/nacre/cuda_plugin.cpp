#include "cuda_plugin.h"

#include <dlfcn.h>

#include <filesystem>

namespace nacre::cli {
namespace {

// Beside the program (a build folder), then where `make install` puts libraries.
void* open_plugin() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {".", "../lib", "../lib/x86_64-linux-gnu"}) {
    void* handle = dlopen((folder / place / "libnacre_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
  }
  return nullptr;
}

}  // namespace

CudaDevices find_cuda_devices() {
  void* plugin = open_plugin();
  if (plugin == nullptr) return {{}, "this build has no CUDA plug-in (cmake --preset cuda builds it)"};
  const auto abi = reinterpret_cast<decltype(&nacre_cuda_abi)>(dlsym(plugin, "nacre_cuda_abi"));
  const auto devices = reinterpret_cast<decltype(&nacre_cuda_devices)>(dlsym(plugin, "nacre_cuda_devices"));
  if (abi == nullptr || devices == nullptr || abi() != NACRE_CUDA_ABI)
    return {{}, "the CUDA plug-in belongs to another version"};
  CudaDevices found;
  found.list.resize(64);
  char error[256] = "no GPU";
  const int count = devices(found.list.data(), static_cast<int>(found.list.size()), error);
  found.list.resize(count > 0 ? static_cast<size_t>(count) : 0);
  if (count <= 0) found.reason = error;
  return found;
}

}  // namespace nacre::cli

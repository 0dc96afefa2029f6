#include "nacre/cuda/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "nacre/base/error.h"

namespace nacre::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders() {
  std::vector<fs::path> roots;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') roots.emplace_back(value);
  }
  roots.emplace_back("/usr/local/cuda");
  roots.emplace_back("/usr/local/cuda-" + std::to_string(NACRE_CUDA_MAJOR));
  std::vector<fs::path> found;
  for (const fs::path& root : roots) {
    for (const char* place : {"lib64", "lib", "targets/x86_64-linux/lib"}) found.push_back(root / place);
  }
  return found;
}

// NVRTC opens its companion libnvrtc-builtins by name. Outside of the folders of the dynamic
// loader, this fails unless the companion has been opened before.
void open_companions(const fs::path& folder, const std::string& file) {
  const std::string prefix = file.substr(0, file.find(".so")) + "-builtins.so";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) dlopen(entry.path().c_str(), RTLD_LAZY | RTLD_GLOBAL);
  }
}

}  // namespace

Library::Library(const std::string& file) : file_(file), handle_(dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  for (const fs::path& folder : folders()) {
    std::error_code ignored;
    if (!fs::exists(folder / file, ignored)) continue;
    open_companions(folder, file);
    handle_ = dlopen((folder / file).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle_ != nullptr) return;
  }
  throw UserError("cuda", file + " was not found",
                  "install the CUDA " + std::to_string(NACRE_CUDA_MAJOR) +
                      " libraries, and set LD_LIBRARY_PATH or CUDA_HOME to where they are");
}

void* Library::address(const char* name) const {
  void* found = dlsym(handle_, name);
  NACRE_CHECK(found != nullptr, file_ + " has no " + name);
  return found;
}

}  // namespace nacre::cuda

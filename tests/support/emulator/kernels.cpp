#include "support/emulator/kernels.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/device/image.h"

namespace nacre::emulator {
namespace {

constexpr int kMostArguments = 256;

// Writes an image to a temporary file, opens it as a library, and returns the library. The file is
// not needed afterwards.
void* open_library(const std::string& image) {
  std::string path = (std::filesystem::temp_directory_path() / "nacre-kernel-XXXXXX").string();
  const int file = mkstemp(path.data());
  NACRE_CHECK(file >= 0, "no temporary file for a kernel of the emulated device");
  size_t done = 0;
  while (done < image.size()) {
    const ssize_t written = write(file, image.data() + done, image.size() - done);
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  close(file);
  void* library = done == image.size() ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  return library;
}

}  // namespace

Kernels::~Kernels() {
  for (const auto& [bytes, image] : images_) dlclose(image.library);
}

const Kernel* Kernels::load(const std::string& image, const std::string& function) {
  const std::lock_guard lock(mutex_);
  auto found = images_.find(image);
  if (found == images_.end()) {
    if (const std::string fault = fault_of_image(image); !fault.empty()) throw RuntimeError(function, fault);
    void* library = open_library(image);
    NACRE_CHECK(library != nullptr, function + ": the image cannot be loaded");
    found = images_.emplace(image, Image{library, {}}).first;
  }
  auto& kernels = found->second.kernels;
  if (const auto known = kernels.find(function); known != kernels.end()) return known->second.get();
  auto kernel = std::make_unique<Kernel>();
  kernel->name = function;
  kernel->entry = reinterpret_cast<Entry>(dlsym(found->second.library, ("nacre_entry_" + function).c_str()));
  NACRE_CHECK(kernel->entry != nullptr, "the image has no kernel " + function);
  std::array<int, kMostArguments> sizes{};
  const int count = kernel->entry(nullptr, sizes.data());
  kernel->sizes.assign(sizes.begin(), sizes.begin() + count);
  return kernels.emplace(function, std::move(kernel)).first->second.get();
}

Launch::Launch(const Kernel& kernel, const LaunchShape& shape, const std::vector<void*>& args, int64_t shared_limit) {
  NACRE_CHECK(shape.blocks > 0 && shape.blocks <= std::numeric_limits<int>::max(),
              kernel.name + ": a launch of " + std::to_string(shape.blocks) + " blocks is not possible");
  NACRE_CHECK(shape.shared_bytes <= shared_limit, kernel.name + " wants " + std::to_string(shape.shared_bytes) +
                                                      " bytes of shared memory, a block can have " +
                                                      std::to_string(shared_limit));
  NACRE_CHECK(args.size() == kernel.sizes.size(), "launch of " + kernel.name + ": " + std::to_string(args.size()) +
                                                      " arguments for " + std::to_string(kernel.sizes.size()) +
                                                      " parameters");
  grid_ = {kernel.name,        kernel.entry, static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.threads),
           shape.shared_bytes, shared_limit};
  for (size_t i = 0; i < args.size(); ++i) {
    const char* from = static_cast<const char*>(args[i]);
    values_.emplace_back(from, from + kernel.sizes[i]);
  }
}

void Launch::operator()(BlockRunner& runner) const {
  std::vector<void*> args;
  args.reserve(values_.size());
  for (const std::vector<char>& value : values_) args.push_back(const_cast<char*>(value.data()));
  runner.run(grid_, args.data());
}

}  // namespace nacre::emulator

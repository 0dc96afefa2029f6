#include "nacre/cuda/kernels.h"

#include <limits>

#include "nacre/device/image.h"

namespace nacre::cuda {

Kernels::~Kernels() {
  try {
    const Current current(context_);
    for (const auto& [bytes, image] : images_) driver().library_unload(image.library);
  } catch (const std::exception&) {
    // The calls throw if the process ends and the driver is already gone. The images are gone with
    // the driver.
    return;
  }
}

DeviceFunction Kernels::load(const std::string& image, const std::string& function) {
  const Current current(context_);
  const std::lock_guard lock(mutex_);
  auto found = images_.find(image);
  if (found == images_.end()) {
    // The driver does not know the size of an image, so a damaged one has to be found here.
    if (const std::string fault = fault_of_image(image); !fault.empty()) throw RuntimeError(function, fault);
    CUlibrary library = nullptr;
    NACRE_CUDA(driver().library_load(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    found = images_.emplace(image, Image{library, {}}).first;
  }
  auto& functions = found->second.functions;
  if (const auto known = functions.find(function); known != functions.end()) return known->second.get();

  auto entry = std::make_unique<Function>();
  entry->name = function;
  const CUresult result = driver().library_kernel(&entry->kernel, found->second.library, function.c_str());
  NACRE_CHECK(result == CUDA_SUCCESS, "the image has no kernel " + function + ": " + describe(result));
  // Loads the kernel now. Otherwise it would be loaded at its first launch, which may be inside a
  // recording.
  CUfunction loaded = nullptr;
  NACRE_CUDA(driver().kernel_function(&loaded, entry->kernel));
  int limit = 0;
  NACRE_CUDA(driver().kernel_attribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, entry->kernel,
                                       context_.index()));
  entry->dynamic_limit = limit;
  return functions.emplace(function, std::move(entry)).first->second.get();
}

// Allows blocks of the function `bytes` bytes of shared memory; a block gets more than 48 KiB only
// on request. If no request is needed, the mutex is not locked, so a launch does not wait while
// another thread loads an image.
void Kernels::allow_shared(Function& function, int64_t bytes) const {
  if (bytes <= function.dynamic_limit) return;
  const std::lock_guard lock(mutex_);
  if (bytes <= function.dynamic_limit) return;
  NACRE_CHECK(bytes <= context_.info().shared_bytes, function.name + " wants " + std::to_string(bytes) +
                                                         " bytes of shared memory, a block can have " +
                                                         std::to_string(context_.info().shared_bytes));
  NACRE_CUDA(driver().set_kernel_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes),
                                           function.kernel, context_.index()));
  function.dynamic_limit = bytes;
}

void Kernels::launch(DeviceFunction function, const LaunchShape& shape, const std::vector<void*>& args) {
  if (shape.blocks == 0) return;
  auto& entry = *static_cast<Function*>(function);
  NACRE_CHECK(shape.blocks > 0 && shape.blocks <= std::numeric_limits<int>::max(),
              entry.name + ": a launch of " + std::to_string(shape.blocks) + " blocks is not possible");
  const Current current(context_);
  allow_shared(entry, shape.shared_bytes);
  const CUresult result =
      driver().launch(reinterpret_cast<CUfunction>(entry.kernel), static_cast<unsigned>(shape.blocks), 1, 1,
                      static_cast<unsigned>(shape.threads), 1, 1, static_cast<unsigned>(shape.shared_bytes),
                      context_.stream(), const_cast<void**>(args.data()), nullptr);
  NACRE_CHECK(result == CUDA_SUCCESS, "launch of " + entry.name + ": " + describe(result));
}

int Kernels::occupancy(DeviceFunction function, int threads, int64_t shared_bytes) {
  auto& entry = *static_cast<Function*>(function);
  const Current current(context_);
  allow_shared(entry, shared_bytes);
  int blocks = 0;
  NACRE_CUDA(driver().occupancy(&blocks, reinterpret_cast<CUfunction>(entry.kernel), threads,
                                static_cast<size_t>(shared_bytes)));
  return blocks;
}

}  // namespace nacre::cuda

// Loads images and launches their functions.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "nacre/cuda/context.h"

namespace nacre::cuda {

class Kernels {
 public:
  explicit Kernels(const Context& context) : context_(context) {}
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Returns a function of an image. An image is loaded once, however many of its functions are
  // used.
  DeviceFunction load(const std::string& image, const std::string& function);
  void launch(DeviceFunction function, const LaunchShape& shape, const std::vector<void*>& args);
  int occupancy(DeviceFunction function, int threads, int64_t shared_bytes);

 private:
  struct Function {
    CUkernel kernel = nullptr;
    std::atomic<int64_t> dynamic_limit{0};  // most dynamic shared memory that the driver allows now
    std::string name;
  };
  struct Image {
    CUlibrary library = nullptr;
    std::unordered_map<std::string, std::unique_ptr<Function>> functions;
  };
  void allow_shared(Function& function, int64_t bytes) const;

  const Context& context_;
  mutable std::mutex mutex_;                       // protects images_, and is held to raise a limit
  std::unordered_map<std::string, Image> images_;  // the key is the image itself
};

}  // namespace nacre::cuda

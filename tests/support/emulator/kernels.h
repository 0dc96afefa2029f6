// Loads images and finds their kernels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/device/device.h"
#include "support/emulator/blocks.h"

namespace nacre::emulator {

struct Kernel {
  std::string name;
  Entry entry = nullptr;
  std::vector<int> sizes;  // sizes of the arguments in bytes
};

class Kernels {
 public:
  Kernels() = default;
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  const Kernel* load(const std::string& image, const std::string& function);

 private:
  struct Image {
    void* library = nullptr;
    std::map<std::string, std::unique_ptr<Kernel>> kernels;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Image> images_;  // images by their bytes
};

// A Launch is one launch of a kernel, with copies of its arguments.
class Launch {
 public:
  Launch(const Kernel& kernel, const LaunchShape& shape, const std::vector<void*>& args, int64_t shared_limit);
  void operator()(BlockRunner& runner) const;

 private:
  Grid grid_;
  std::vector<std::vector<char>> values_;
};

}  // namespace nacre::emulator

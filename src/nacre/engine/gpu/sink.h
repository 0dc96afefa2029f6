// Page-locked memory on the way to a device, and the end of the loader's transfers there.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "nacre/device/device.h"
#include "nacre/schedule/batch_loader.h"

namespace nacre {

// Blocks of page-locked memory that are used again when what lay in them has been copied. Any thread.
class PinnedPool {
 public:
  explicit PinnedPool(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // Memory that one sender fills piece by piece, and the pool's again when it goes.
  struct Block {
    std::shared_ptr<char> memory;
    int64_t bytes = 0;
    int64_t used = 0;
  };
  // Of at least so many bytes.
  Block take(int64_t bytes);

 private:
  struct Free {
    char* memory = nullptr;
    int64_t bytes = 0;
    DeviceEvent copied;
  };
  void give_back(const Free& block);

  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<Free> free_;
};

// Rows go to the device's memory in pieces as they come, beside what runs there; it waits for them in finish().
// `copies` is the same GPU, opened for nothing but this.
std::unique_ptr<FeatureSink> make_device_sink(std::shared_ptr<Device> device, std::shared_ptr<Device> copies);

}  // namespace nacre

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
  // Copies to `block` (a new one where it is full) and from there to the device, beside what runs there.
  void send(Block& block, void* to, const void* host, int64_t bytes);

 private:
  struct Free {
    char* memory = nullptr;
    int64_t bytes = 0;
    DeviceEvent copied;
  };
  Block take(int64_t bytes);
  void give_back(const Free& block);

  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<Free> free_;
};

// Rows go to device memory in pieces as they come, beside what runs there; the device waits for them in finish().
std::unique_ptr<FeatureSink> make_device_sink(std::shared_ptr<Device> device);

}  // namespace nacre

// This header declares page-locked memory for copies to a device, and the sink by which the batch
// loader sends rows there.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "nacre/device/device.h"
#include "nacre/schedule/batch_loader.h"

namespace nacre {

// PinnedPool: lends blocks of page-locked memory. A block is used again when its bytes have been
// copied. Any thread may use the pool.
class PinnedPool {
 public:
  explicit PinnedPool(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // Holds memory that one sender fills piece by piece. The memory returns to the pool when the last
  // copy of the pointer `memory` is gone.
  struct Block {
    std::shared_ptr<char> memory;
    int64_t bytes = 0;
    int64_t used = 0;
  };
  // Returns a block of at least `bytes` bytes.
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

// Returns a sink that copies rows to device memory in pieces, as they arrive, while the device
// works. finish() makes the work of `device` wait for them. `copies` is the same GPU, opened a
// second time for these copies only.
std::unique_ptr<FeatureSink> make_device_sink(std::shared_ptr<Device> device, std::shared_ptr<Device> copies);

}  // namespace nacre

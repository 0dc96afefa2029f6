// The way of bytes from the host's memory to the device's.
#pragma once

#include <memory>

#include "nacre/base/function_ref.h"
#include "nacre/device/device.h"
#include "nacre/engine/gpu/sink.h"

namespace nacre {

// Returns device memory of at least `bytes` bytes, which is released with the last copy of the pointer.
std::shared_ptr<void> allocate_on(const std::shared_ptr<Device>& device, int64_t bytes);

// Sends bytes to the device. Without a pool of page-locked memory every call copies at once, in the order of the
// device's other work. With a pool, bytes are gathered in page-locked blocks and travel together beside what the device
// does: flush() sends off what has been gathered, and arrived() makes the device's later work wait for it.
class Staging {
 public:
  Staging(std::shared_ptr<Device> device, std::shared_ptr<PinnedPool> pool)
      : device_(std::move(device)), pool_(std::move(pool)) {}

  // Copies bytes to device memory `to`. The host's bytes may change when this returns.
  void send(void* to, const void* host, int64_t bytes);
  // Returns new device memory that holds the host's bytes, of which there must be some. The host's bytes may change
  // when this returns.
  std::shared_ptr<void> place(const void* host, int64_t bytes);
  // Returns new device memory that holds the `bytes` bytes, at least one, which `fill` writes: with a pool straight
  // into page-locked memory.
  std::shared_ptr<void> place_filled(int64_t bytes, FunctionRef<void(void*)> fill);
  void flush() { flush(block_.used); }
  void arrived();

 private:
  // Makes room for so many bytes in the present block, or in a new one, and returns their place there.
  int64_t reserve(int64_t bytes);
  void flush(int64_t end);
  std::shared_ptr<void> on_device(int64_t at) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<PinnedPool> pool_;
  PinnedPool::Block block_;
  std::shared_ptr<void> for_block_;  // device memory: a byte for each byte of block_
  int64_t flushed_ = 0;              // bytes of block_ that are on their way
  DeviceEvent sent_;                 // comes after the last bytes; null when the device need not wait for any
};

}  // namespace nacre

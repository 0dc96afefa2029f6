// Sends bytes from host memory to device memory.
#pragma once

#include <memory>

#include "nacre/base/function_ref.h"
#include "nacre/device/device.h"
#include "nacre/engine/gpu/sink.h"

namespace nacre {

// Returns device memory of at least `bytes` bytes, which is released when the last copy of the
// pointer is gone.
std::shared_ptr<void> allocate_on(const std::shared_ptr<Device>& device, int64_t bytes);

// Sends bytes to the device. Without a pool of page-locked memory, every call copies at once, in
// order with the other work of the device. With a pool, bytes are gathered in page-locked blocks
// and are copied together while the device works: flush() starts the copies, and arrived() makes
// the later work of the device wait for them.
class Staging {
 public:
  Staging(std::shared_ptr<Device> device, std::shared_ptr<PinnedPool> pool)
      : device_(std::move(device)), pool_(std::move(pool)) {}

  // Copies bytes to device memory `to`. The bytes of the host may change when this returns.
  void send(void* to, const void* host, int64_t bytes);
  // Returns new device memory with a copy of the bytes of the host, at least one. The bytes of the
  // host may change when this returns.
  std::shared_ptr<void> place(const void* host, int64_t bytes);
  // Returns new device memory with the `bytes` bytes (at least one) that `fill` writes. With a
  // pool, `fill` writes directly into page-locked memory.
  std::shared_ptr<void> place_filled(int64_t bytes, FunctionRef<void(void*)> fill);
  void flush() { flush(block_.used); }
  void arrived();

 private:
  // Makes room for `bytes` bytes in the present block or in a new one, and returns their offset in
  // it.
  int64_t reserve(int64_t bytes);
  void flush(int64_t end);
  std::shared_ptr<void> on_device(int64_t at) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<PinnedPool> pool_;
  PinnedPool::Block block_;
  std::shared_ptr<void> for_block_;  // device memory with a byte for each byte of block_
  int64_t flushed_ = 0;              // bytes of block_ whose copies have been started
  DeviceEvent sent_;                 // follows the last copy; null if there is nothing to wait for
};

}  // namespace nacre

// RankBuffers: holds the memory in which a rank keeps copies for other ranks to read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "nacre/device/device.h"

namespace nacre {

// Names the end of work that reads a buffer, and the device that does the work.
struct BufferReader {
  Device* device = nullptr;
  DeviceEvent event;
};

struct RankBuffer {
  std::shared_ptr<void> memory;
  int64_t bytes = 0;
  bool pinned = false;  // page-locked host memory; otherwise memory of the rank's device
  std::vector<BufferReader> readers;
};

// Holds the buffers of one rank. A buffer that was given back is used again when the work that
// reads it has ended.
class RankBuffers {
 public:
  // `device` is the device of the rank, or null if the rank has none. `allocator` allocates
  // page-locked memory.
  RankBuffers(std::shared_ptr<Device> device, std::shared_ptr<Device> allocator)
      : device_(std::move(device)), allocator_(std::move(allocator)) {}

  // Returns a buffer. Only the thread of the rank calls this. Work that the thread begins or queues
  // from now on may write to the buffer.
  RankBuffer take(int64_t bytes, bool pinned);
  // Gives a buffer back. Any thread may call this.
  void give(RankBuffer buffer);

 private:
  std::shared_ptr<Device> device_, allocator_;
  std::mutex mutex_;
  // Buffers that nobody uses, by kind and size.
  std::multimap<std::pair<bool, int64_t>, RankBuffer> free_;
};

}  // namespace nacre

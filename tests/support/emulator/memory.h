// Memory: the memory of the emulated device. Each block lies between pages that cannot be touched,
// ends where the second of them begins, and is filled with 0xff when it is given out and when it is
// given back. Freed blocks are kept and given out again, as the CUDA device does it.
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>

#include "support/emulator/stream.h"

namespace nacre::emulator {

class Memory {
 public:
  explicit Memory(Stream& stream) : stream_(stream) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Returns a new block. Throws UserError if the device has no room.
  void* allocate(int64_t bytes);
  void release(void* memory);
  void trim();
  int64_t used_bytes() const;
  int64_t peak_bytes() const;
  void reset_peak();
  // Returns how many bytes all devices of this process have taken, including free blocks.
  static int64_t taken_bytes();

 private:
  struct Block {
    char* memory = nullptr;
    char* mapped = nullptr;
    int64_t bytes = 0;  // bytes that can be used
    int64_t map_bytes = 0;
    int64_t asked = 0;  // bytes that the present owner asked for
  };
  Block reuse(int64_t bytes);
  Block take(int64_t bytes);
  [[noreturn]] void refuse(int64_t bytes) const;
  static void unmap(const Block& block);

  Stream& stream_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> live_;
  std::multimap<int64_t, Block> free_;
  int64_t used_ = 0, peak_ = 0;
};

// Returns whether the `bytes` bytes at `memory` lie in one block that some device of this process
// has given out.
bool is_device_memory(const void* memory, int64_t bytes);

// These functions are about page-locked memory of all devices. It is host memory whose addresses
// are known, so that copies from it can be told from others.
void* allocate_pinned(int64_t bytes);
void release_pinned(void* memory);
bool is_pinned(const void* memory);

}  // namespace nacre::emulator

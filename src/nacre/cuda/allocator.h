// Allocates device memory in blocks and keeps released blocks for later calls. All work runs in one
// stream, so a released block may be handed out again at once: the work that used it is queued
// before the work that will use it. Copies outside of the stream wait for that work (device.h).
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>

#include "nacre/cuda/context.h"

namespace nacre::cuda {

class Allocator {
 public:
  explicit Allocator(const Context& context) : context_(context) {}
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Returns memory aligned to 256 bytes; never null, not even for 0 bytes. Throws UserError if the
  // device has no room.
  void* allocate(int64_t bytes);
  void release(void* memory);  // does nothing for null
  void trim();

  int64_t used_bytes() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }
  int64_t peak_bytes() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = used_;
  }

 private:
  void* reuse(int64_t block);
  void* take(int64_t block);
  [[noreturn]] void refuse(int64_t bytes) const;

  const Context& context_;
  mutable std::recursive_mutex mutex_;  // protects the members below
  std::unordered_map<void*, int64_t> live_;
  std::multimap<int64_t, void*> free_;  // free memory by its size
  int64_t used_ = 0;
  int64_t peak_ = 0;
};

// Device memory that is released at the end of a scope.
class Temporary {
 public:
  Temporary(Allocator& allocator, int64_t bytes) : allocator_(allocator), memory_(allocator.allocate(bytes)) {}
  ~Temporary() { allocator_.release(memory_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void* get() const { return memory_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  Allocator& allocator_;
  void* memory_;
};

}  // namespace nacre::cuda

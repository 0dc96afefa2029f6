// Pool: memory that the arrays of one batch give back and those of the next one use again. Fresh
// pages would cost as much time as the sampling that fills them, because the system clears them
// first.
#pragma once

#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "nacre/tensor/array.h"

namespace nacre {

// Uninitialised values in memory of a pool. freeze() makes an array of them; the memory returns to
// the pool when nobody uses it any more.
template <class T>
class Pooled {
 public:
  Pooled() = default;
  Pooled(std::shared_ptr<void> memory, int64_t size) : memory_(std::move(memory)), size_(size) {}
  T* data() { return static_cast<T*>(memory_.get()); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data()[i]; }
  // Returns the first `size` values as an array.
  Array<T> freeze(int64_t size) && {
    const T* data = static_cast<const T*>(memory_.get());
    size_ = 0;
    return Array<T>(std::move(memory_), data, size);
  }

 private:
  std::shared_ptr<void> memory_;
  int64_t size_ = 0;
};

// Any thread may call take(), and arrays may be dropped on any thread, also after the pool is gone.
class Pool {
 public:
  template <class T>
  Pooled<T> take(int64_t size) const {
    return Pooled<T>(take_bytes(size * static_cast<int64_t>(sizeof(T))), size);
  }

 private:
  struct Free {
    std::mutex mutex;
    std::map<int64_t, std::vector<std::shared_ptr<void>>> blocks;  // unused memory, by its size
  };

  std::shared_ptr<void> take_bytes(int64_t bytes) const {
    // Sizes are rounded up to one of four sizes between powers of two. So there are few different
    // sizes, and memory of the last batch is likely to fit.
    const int64_t quarter = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes) | 4096)) / 4;
    const int64_t rounded = (bytes + quarter - 1) / quarter * quarter;
    std::shared_ptr<void> block;
    int64_t size = rounded;
    {
      const std::lock_guard lock(free_->mutex);
      const auto at = free_->blocks.lower_bound(rounded);
      if (at != free_->blocks.end() && at->first <= 2 * rounded) {
        block = std::move(at->second.back());
        size = at->first;
        at->second.pop_back();
        if (at->second.empty()) free_->blocks.erase(at);
      }
    }
    if (!block) block = allocate_bytes(size);
    void* data = block.get();
    return {data, [free = free_, block = std::move(block), size](void*) mutable {
              const std::lock_guard lock(free->mutex);
              free->blocks[size].push_back(std::move(block));
            }};
  }

  std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

}  // namespace nacre

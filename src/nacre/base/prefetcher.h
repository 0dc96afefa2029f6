// Prefetcher: makes numbered items on background threads before anybody asks for them, and hands
// them out in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "nacre/base/tasks.h"

namespace nacre {

template <class T>
class Prefetcher {
 public:
  // `make` is called from several threads at once. `depth` is the number of items that are made in
  // advance. With depth 0, or if there is no background thread, next() makes each item itself.
  Prefetcher(int depth, std::function<T(int64_t)> make) : depth_(depth), make_(std::move(make)) {}
  ~Prefetcher() { stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Lets next() return the items `first` to `end` - 1. Items that were made but not fetched are
  // dropped.
  void begin(int64_t first, int64_t end) {
    stop();
    next_ = posted_ = first;
    end_ = end;
    if (tasks_.workers() > 0) post_up_to(first + depth_);
  }

  // Returns the next item, after waiting for it if necessary. Throws what `make` threw for this
  // item.
  T next() {
    const int64_t index = next_++;
    if (index >= posted_) return make_(index);
    Made made;
    {
      std::unique_lock lock(mutex_);
      const auto at = made_.find(index);
      changed_.wait(lock, [&] { return at->second.ready; });
      made = std::move(at->second);
      made_.erase(at);
    }
    post_up_to(next_ + depth_);
    if (made.error) std::rethrow_exception(made.error);
    return std::move(made.value);
  }

  // Waits until no item is being made, and drops all items.
  void stop() {
    std::unique_lock lock(mutex_);
    dropped_ = true;
    changed_.wait(lock, [&] { return open_ == 0; });
    dropped_ = false;
    made_.clear();
  }

 private:
  struct Made {
    T value{};
    std::exception_ptr error;
    bool ready = false;
  };

  // Posts tasks that make the items before `end`. Stops if no thread could be started; next() makes
  // the remaining items then. Everything that may fail for lack of memory is done here, on the
  // caller's thread, so that a task never fails to finish.
  void post_up_to(int64_t end) {
    for (; posted_ < std::min(end, end_) && posted_ >= next_; ++posted_) {
      const std::lock_guard lock(mutex_);
      Made& made = made_[posted_];
      if (!tasks_.post([this, &made, index = posted_] { run(index, made); })) {
        made_.erase(posted_);
        return;
      }
      ++open_;
    }
  }

  void run(int64_t index, Made& made) {
    bool wanted = false;
    {
      const std::lock_guard lock(mutex_);
      wanted = !dropped_;
    }
    if (wanted) {
      try {
        made.value = make_(index);
      } catch (...) {
        made.error = std::current_exception();
      }
    }
    const std::lock_guard lock(mutex_);
    made.ready = true;
    --open_;
    changed_.notify_all();
  }

  int depth_;
  std::function<T(int64_t)> make_;
  int64_t next_ = 0, posted_ = 0, end_ = 0;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<int64_t, Made> made_;
  int64_t open_ = 0;  // number of posted tasks that have not finished
  bool dropped_ = false;
  BackgroundTasks tasks_;
};

}  // namespace nacre

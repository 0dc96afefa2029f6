// A sink that behaves like a device: rows are copied elsewhere when they are sent, memory that is
// given up is overwritten, and calls that break the promises of the interface fail the running
// test.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "nacre/schedule/batch_loader.h"

namespace nacre::test {

class CheckedSink : public FeatureSink {
 public:
  void* buffer(int slot, int64_t bytes) override;
  void send(int slot, int64_t begin, int64_t end) override;
  void* finish(int slot, int64_t bytes) override;

  // The batch that was finished last is over: its memory is overwritten, and its slot may be used
  // again.
  void over();

  std::chrono::microseconds delay{0};    // delay of every send
  std::atomic<int> fail_send_after{-1};  // number of sends that work before one throws
  std::atomic<int64_t> sends{0};         // number of sends so far
  std::atomic<int> slots_used{0};        // number of different slots
  std::atomic<int> most_at_once{0};      // most slots between their first call and finish()

 private:
  struct Slot {
    std::vector<char> host, device;
    int64_t sent = 0;
    bool open = false, asked = false, computed = false;
    std::atomic<int> inside{0};
  };
  class Visit;
  Slot& at(int slot);
  void open(Slot& slot);

  std::mutex mutex_;
  std::map<int, Slot> slots_;
  std::atomic<int> open_{0};
  Slot* last_ = nullptr;
};

}  // namespace nacre::test

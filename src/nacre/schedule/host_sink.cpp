#include <cstring>
#include <map>
#include <mutex>

#include "nacre/schedule/batch_loader.h"

namespace nacre {
namespace {

class HostSink : public FeatureSink {
 public:
  void* buffer(int slot, int64_t bytes) override {
    Slot& s = slot_at(slot);
    if (bytes > s.bytes) {
      const auto grown = allocate_bytes(bytes);
      if (s.bytes > 0) std::memcpy(grown.get(), s.memory.get(), static_cast<size_t>(s.bytes));
      s = {grown, bytes};
    }
    return s.memory.get();
  }
  void send(int, int64_t, int64_t) override {}
  void* finish(int slot, int64_t) override { return slot_at(slot).memory.get(); }

 private:
  struct Slot {
    std::shared_ptr<void> memory;
    int64_t bytes = 0;
  };
  Slot& slot_at(int slot) {
    const std::lock_guard lock(mutex_);
    return slots_[slot];  // the features stay where they are
  }
  std::mutex mutex_;
  std::map<int, Slot> slots_;
};

}  // namespace

std::unique_ptr<FeatureSink> make_host_sink() { return std::make_unique<HostSink>(); }

}  // namespace nacre

#include "nacre/engine/gpu/sink.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"

namespace nacre {
namespace {

constexpr int64_t kBlockBytes = int64_t{8} << 20;
constexpr int64_t kBlocksKept = 16;

// DeviceSink: sends rows to a device. The copies run in a stream of their own, that of `copies`.
// This stream waits for the device only if the last reader of a slot may still be at work.
class DeviceSink : public FeatureSink {
 public:
  DeviceSink(std::shared_ptr<Device> device, std::shared_ptr<Device> copies)
      : device_(std::move(device)), copies_(std::move(copies)) {}
  ~DeviceSink() override {
    // If synchronize() fails, the device may still read or write the memory, so the memory is not
    // released.
    try {
      copies_->synchronize();
      for (const auto& [number, slot] : slots_) {
        device_->release_pinned(slot.host);
        device_->release(slot.there);
      }
    } catch (const std::exception& error) {
      log_verbose(std::string("memory of batches was not given back: ") + error.what());
    }
  }
  DeviceSink(const DeviceSink&) = delete;
  DeviceSink& operator=(const DeviceSink&) = delete;

  void* buffer(int number, int64_t bytes) override {
    Slot& slot = slot_at(number);
    begin(slot);
    if (bytes <= slot.bytes) return slot.host;
    settle(slot);
    // Getting page-locked memory takes long, and batches have similar sizes, so a quarter is added.
    bytes += bytes / 4;
    auto* host = static_cast<char*>(device_->allocate_pinned(bytes));
    auto* there = static_cast<char*>(device_->allocate(bytes));
    copies_->wait_for(device_->record());  // the memory may have had another use before
    if (slot.bytes > 0) std::memcpy(host, slot.host, static_cast<size_t>(slot.bytes));
    if (slot.sent > 0) upload(slot, there, host, slot.sent);
    device_->release_pinned(slot.host);
    device_->release(slot.there);
    slot.host = host;
    slot.there = there;
    slot.bytes = bytes;
    return host;
  }
  void send(int number, int64_t begin, int64_t end) override {
    Slot& slot = slot_at(number);
    upload(slot, slot.there + begin, slot.host + begin, end - begin);
    slot.sent = end;
  }
  void* finish(int number, int64_t) override {
    Slot& slot = slot_at(number);
    if (!slot.copies.empty()) device_->wait_for(slot.copies.back().second);
    const std::lock_guard lock(mutex_);
    // All work that reads the batch before this one is queued. Its slot may already be in use for
    // the next batch.
    if (last_ != nullptr && last_->finished) last_->over = device_->record();
    last_ = &slot;
    slot.finished = true;
    return slot.there;
  }
  void settle(int number) override { settle(slot_at(number)); }
  // Returns the seconds of all copies, including those of slots that have not been used again,
  // which are not settled yet.
  double seconds() override {
    std::vector<Copy> open;
    double settled = 0;
    {
      const std::scoped_lock lock(mutex_, stream_mutex_);
      settled = busy_;
      for (const auto& [number, slot] : slots_) open.insert(open.end(), slot.copies.begin(), slot.copies.end());
    }
    return settled + seconds_of(open);
  }

 private:
  using Copy = std::pair<DeviceEvent, DeviceEvent>;  // events before and after a copy

  struct Slot {
    char* host = nullptr;
    char* there = nullptr;
    int64_t bytes = 0;
    int64_t sent = 0;
    bool finished = true;
    DeviceEvent over;  // follows the last read of the slot by the device
    // The copies of the batch. The thread that prepares the batch changes them under stream_mutex_.
    std::vector<Copy> copies;
  };
  Slot& slot_at(int number) {
    const std::lock_guard lock(mutex_);
    return slots_[number];  // references to slots stay valid
  }
  // Starts a new batch in a slot whose batch is over. Copies that were started belong to the old
  // batch, which the device may still read.
  void begin(Slot& slot) {
    {
      const std::lock_guard lock(mutex_);
      if (!slot.finished) return;
      slot.finished = false;
      copies_->wait_for(slot.over ? slot.over : device_->record());
      slot.over.reset();
    }
    slot.sent = 0;
    settle(slot);
  }
  // Waits until no copy reads the host memory of the slot any more.
  void settle(Slot& slot) {
    const double seconds = seconds_of(slot.copies);
    const std::lock_guard lock(stream_mutex_);
    busy_ += seconds;
    slot.copies.clear();
  }
  // Waits for these copies and returns their seconds.
  double seconds_of(const std::vector<Copy>& copies) {
    double seconds = 0;
    for (const auto& [from, to] : copies) seconds += copies_->elapsed(from, to);
    return seconds;
  }
  // Queues a copy, with an event before it and one after it. The memory is page-locked, so this
  // does not wait for the copy. The mutex keeps copies of other slots from coming between a copy
  // and its events.
  void upload(Slot& slot, char* to, const char* from, int64_t bytes) {
    const std::lock_guard lock(stream_mutex_);
    const DeviceEvent before = copies_->record();
    copies_->upload(to, from, bytes);
    slot.copies.emplace_back(before, copies_->record());
  }

  std::shared_ptr<Device> device_, copies_;
  std::mutex mutex_;
  std::mutex stream_mutex_;
  std::map<int, Slot> slots_;
  Slot* last_ = nullptr;  // slot of the last finished batch
  double busy_ = 0;       // seconds of the copies that were settled; guarded by stream_mutex_
};

}  // namespace

PinnedPool::~PinnedPool() {
  try {
    for (const Free& free : free_) {
      device_->await(free.copied);
      device_->release_pinned(free.memory);
    }
  } catch (const std::exception& error) {
    log_verbose(std::string("page-locked memory was not given back: ") + error.what());
  }
}

PinnedPool::Block PinnedPool::take(int64_t bytes) {
  const TraceSpan span("prepare", "page-locked block");
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(bytes, kBlockBytes))));
  Free found;
  {
    const std::lock_guard lock(mutex_);
    // This takes the block that was returned first, because its copies are most likely done. If
    // only a few blocks are free, even its copies may not be done, so a new block is allocated.
    const auto fits = [&](const Free& free) { return free.bytes == size; };
    const auto at = std::find_if(free_.begin(), free_.end(), fits);
    if (at != free_.end() && std::count_if(at, free_.end(), fits) > kBlocksKept) {
      found = *at;
      free_.erase(at);
    }
  }
  if (found.memory == nullptr) {
    found.memory = static_cast<char*>(device_->allocate_pinned(size));
  } else {
    device_->await(found.copied);
  }
  return {{found.memory,
           [this, memory = found.memory, size](char*) {
             // If the device cannot record an event, nobody knows when the memory is free again, so
             // it is not used any more.
             try {
               give_back({memory, size, device_->copied()});
             } catch (const std::exception& error) {
               log_verbose(std::string("page-locked memory was not given back: ") + error.what());
             }
           }},
          size,
          0};
}

void PinnedPool::give_back(const Free& block) {
  const std::lock_guard lock(mutex_);
  free_.push_back(block);
}

std::unique_ptr<FeatureSink> make_device_sink(std::shared_ptr<Device> device, std::shared_ptr<Device> copies) {
  return std::make_unique<DeviceSink>(std::move(device), std::move(copies));
}

}  // namespace nacre

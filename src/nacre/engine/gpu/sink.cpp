#include "nacre/engine/gpu/sink.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

namespace nacre {
namespace {

constexpr int64_t kBlockBytes = int64_t{8} << 20;

class DeviceSink : public FeatureSink {
 public:
  explicit DeviceSink(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~DeviceSink() override {
    device_->await(device_->copied());
    device_->wait_for(device_->copied());  // the memory is others' now
    for (const auto& [number, slot] : slots_) {
      device_->release_pinned(slot.host);
      device_->release(slot.there);
    }
  }
  DeviceSink(const DeviceSink&) = delete;
  DeviceSink& operator=(const DeviceSink&) = delete;

  void* buffer(int number, int64_t bytes) override {
    Slot& slot = slot_at(number);
    // A batch begins: those sent before belong to one that is over.
    if (slot.finished) slot.sent = 0;
    slot.finished = false;
    if (bytes <= slot.bytes) return slot.host;
    device_->await(device_->copied());
    auto* host = static_cast<char*>(device_->allocate_pinned(bytes));
    auto* there = static_cast<char*>(device_->allocate(bytes));
    if (slot.bytes > 0) std::memcpy(host, slot.host, static_cast<size_t>(slot.bytes));
    if (slot.sent > 0) device_->upload_beside(there, host, slot.sent);
    device_->release_pinned(slot.host);
    device_->release(slot.there);
    slot.host = host;
    slot.there = there;
    slot.bytes = bytes;
    return host;
  }
  void send(int number, int64_t begin, int64_t end) override {
    Slot& slot = slot_at(number);
    device_->upload_beside(slot.there + begin, slot.host + begin, end - begin);
    slot.sent = end;
    slot.copied = device_->copied();
  }
  void* finish(int number, int64_t) override {
    Slot& slot = slot_at(number);
    if (slot.copied) device_->wait_for(slot.copied);
    slot.copied.reset();
    slot.finished = true;
    return slot.there;
  }

 private:
  struct Slot {
    char* host = nullptr;
    char* there = nullptr;
    int64_t bytes = 0;
    int64_t sent = 0;
    bool finished = true;
    DeviceEvent copied;
  };
  Slot& slot_at(int number) {
    const std::lock_guard lock(mutex_);
    return slots_[number];  // stays where it is
  }

  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::map<int, Slot> slots_;
};

}  // namespace

PinnedPool::~PinnedPool() {
  for (const Free& free : free_) {
    device_->await(free.copied);
    device_->release_pinned(free.memory);
  }
}

PinnedPool::Block PinnedPool::take(int64_t bytes) {
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(bytes, kBlockBytes))));
  Free found;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(free_.begin(), free_.end(), [&](const Free& free) { return free.bytes == size; });
    if (at != free_.end()) {
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
             give_back({memory, size, device_->copied()});
           }},
          size,
          0};
}

void PinnedPool::give_back(const Free& block) {
  const std::lock_guard lock(mutex_);
  free_.push_back(block);
}

void PinnedPool::send(Block& block, void* to, const void* host, int64_t bytes) {
  if (block.used + bytes > block.bytes) block = take(bytes);
  char* from = block.memory.get() + block.used;
  std::memcpy(from, host, static_cast<size_t>(bytes));
  block.used += (bytes + 255) / 256 * 256;
  device_->upload_beside(to, from, bytes);
}

std::unique_ptr<FeatureSink> make_device_sink(std::shared_ptr<Device> device) {
  return std::make_unique<DeviceSink>(std::move(device));
}

}  // namespace nacre

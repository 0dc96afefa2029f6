#include "nacre/engine/gpu/staging.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace nacre {

std::shared_ptr<void> allocate_on(const std::shared_ptr<Device>& device, int64_t bytes) {
  return {device->allocate(std::max<int64_t>(bytes, 16)), [device](void* memory) { device->release(memory); }};
}

int64_t Staging::reserve(int64_t bytes) {
  if (block_.used + bytes > block_.bytes) {
    flush();
    block_ = pool_->take(bytes);
    for_block_ = allocate_on(device_, block_.bytes);
    flushed_ = 0;
  }
  const int64_t at = block_.used;
  block_.used = std::min(block_.bytes, (at + bytes + 255) / 256 * 256);
  return at;
}

std::shared_ptr<void> Staging::on_device(int64_t at) const {
  return {for_block_, static_cast<char*>(for_block_.get()) + at};
}

void Staging::send(void* to, const void* host, int64_t bytes) {
  if (bytes == 0) return;
  if (!pool_) return device_->upload(to, host, bytes);
  const int64_t at = reserve(bytes);
  std::memcpy(block_.memory.get() + at, host, static_cast<size_t>(bytes));
  flush(at);
  device_->upload_beside(to, block_.memory.get() + at, bytes);
  sent_ = device_->copied();
  flushed_ = block_.used;
}

std::shared_ptr<void> Staging::place(const void* host, int64_t bytes) {
  if (!pool_) {
    std::shared_ptr<void> memory = allocate_on(device_, bytes);
    device_->upload(memory.get(), host, bytes);
    return memory;
  }
  const int64_t at = reserve(bytes);
  std::memcpy(block_.memory.get() + at, host, static_cast<size_t>(bytes));
  return on_device(at);
}

std::shared_ptr<void> Staging::place_filled(int64_t bytes, FunctionRef<void(void*)> fill) {
  if (!pool_) {
    std::vector<char> values(bytes);
    fill(values.data());
    return place(values.data(), bytes);
  }
  const int64_t at = reserve(bytes);
  fill(block_.memory.get() + at);
  return on_device(at);
}

void Staging::flush(int64_t end) {
  if (flushed_ == end) return;
  device_->upload_beside(static_cast<char*>(for_block_.get()) + flushed_, block_.memory.get() + flushed_,
                         end - flushed_);
  sent_ = device_->copied();
  flushed_ = end;
}

void Staging::arrived() {
  flush();
  if (sent_) device_->wait_for(sent_);
  sent_.reset();
}

}  // namespace nacre

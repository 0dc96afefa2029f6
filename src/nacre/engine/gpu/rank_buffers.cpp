#include "nacre/engine/gpu/rank_buffers.h"

#include <algorithm>
#include <bit>

#include "nacre/engine/gpu/staging.h"

namespace nacre {

RankBuffer RankBuffers::take(int64_t bytes, bool pinned) {
  // Sizes are powers of two, so that calls of similar sizes use the same buffers.
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(bytes, 512))));
  RankBuffer buffer;
  {
    const std::lock_guard lock(mutex_);
    // Buffers of equal sizes are in the order in which they were given back, so this takes the one
    // that was given back first.
    if (const auto found = free_.find({pinned, size}); found != free_.end()) {
      buffer = std::move(found->second);
      free_.erase(found);
    }
  }
  for (const BufferReader& reader : buffer.readers) {
    if (device_ != nullptr) {
      device_->wait_for(reader.event);
    } else {
      reader.device->await(reader.event);
    }
  }
  buffer.readers.clear();
  if (buffer.memory != nullptr) return buffer;
  buffer.bytes = size;
  buffer.pinned = pinned;
  if (pinned) {
    buffer.memory = {allocator_->allocate_pinned(size), [keep = allocator_](void* p) { keep->release_pinned(p); }};
  } else {
    buffer.memory = allocate_on(device_, size);
  }
  return buffer;
}

void RankBuffers::give(RankBuffer buffer) {
  const std::lock_guard lock(mutex_);
  const std::pair key(buffer.pinned, buffer.bytes);
  free_.emplace(key, std::move(buffer));
}

}  // namespace nacre

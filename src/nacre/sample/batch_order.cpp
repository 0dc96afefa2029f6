#include <algorithm>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/sample/draw.h"
#include "nacre/sample/sample.h"

namespace nacre {

int64_t BatchPart::taken(int64_t batches) const {
  return batches / group * count + std::clamp<int64_t>(batches % group - begin, 0, count);
}

BatchOrder::BatchOrder(Array<NodeId> ids, int64_t batch_size, uint64_t seed, bool shuffle, const BatchPart& part)
    : ids_(std::move(ids)),
      batch_size_(batch_size),
      seed_(seed),
      shuffled_from_(shuffle ? 0 : std::numeric_limits<uint64_t>::max()),
      part_(part) {
  if (batch_size < 1) throw UserError("--batch-size", "must be at least 1");
  begin_epoch(0);
}

int64_t BatchOrder::all_batches() const { return (ids_.size() + batch_size_ - 1) / batch_size_; }

void BatchOrder::begin_epoch(uint64_t epoch) {
  order_.assign(ids_.begin(), ids_.end());
  if (epoch < shuffled_from_ || shuffled_from_ == std::numeric_limits<uint64_t>::max()) return;
  const uint64_t key = mix_key(mix_key(seed_, 0x6F72646572), epoch);
  PhiloxBlock words{};
  uint64_t drawn = 0;
  for (size_t i = order_.size(); i > 1; --i, ++drawn) {
    if (drawn % 4 == 0) words = philox(key, 0, drawn / 4);
    std::swap(order_[i - 1], order_[draw::below(words[drawn % 4], i)]);
  }
}

std::span<const NodeId> BatchOrder::batch(int64_t index) const {
  NACRE_CHECK(index >= 0 && index < num_batches(), "the epoch has no batch of this number");
  const int64_t begin = number(index) * batch_size_;
  const int64_t count = std::min(batch_size_, ids_.size() - begin);
  return {order_.data() + begin, static_cast<size_t>(count)};
}

}  // namespace nacre

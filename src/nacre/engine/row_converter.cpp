#include "nacre/engine/row_converter.h"

#include <algorithm>
#include <utility>

#include "nacre/base/bf16.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/rank_side.h"

namespace nacre {
namespace {

constexpr int64_t kChunkElements = 1 << 16;

// Calls convert(element of `from`, element of `to`) for all elements of all rows.
template <class From, class To, class Convert>
void for_each_element(const ConstRows& from, const Rows& to, const Convert& convert) {
  const int64_t width = from.row_bytes / static_cast<int64_t>(sizeof(From));
  parallel_for(from.count, std::max<int64_t>(1, kChunkElements / width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto* x = reinterpret_cast<const From*>(from.row(i));
      auto* y = reinterpret_cast<To*>(to.row(i));
      for (int64_t j = 0; j < width; ++j) convert(x[j], y[j]);
    }
  });
}

void narrow_on_host(const ConstRows& from, const Rows& to) {
  for_each_element<float, uint16_t>(from, to, [](float x, uint16_t& y) { y = to_bf16(x); });
}

void widen_on_host(const ConstRows& from, const Rows& to, bool add) {
  if (add) {
    for_each_element<uint16_t, float>(from, to, [](uint16_t x, float& y) { y += from_bf16(x); });
  } else {
    for_each_element<uint16_t, float>(from, to, [](uint16_t x, float& y) { y = from_bf16(x); });
  }
}

}  // namespace

RowConverter::RowConverter(std::shared_ptr<GpuCompiler> compiler) : compiler_(std::move(compiler)) {}

RowConverter::~RowConverter() = default;

std::byte* RowConverter::take(int64_t bytes, Messages& messages) {
  RankBuffer buffer;
  if (side_ != nullptr) {
    buffer = side_->buffers->take(bytes, false);
  } else {
    const auto fits =
        std::find_if(free_.begin(), free_.end(), [&](const RankBuffer& free) { return free.bytes >= bytes; });
    if (fits != free_.end()) {
      buffer = std::move(*fits);
      free_.erase(fits);
    } else {
      const auto memory = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
      buffer.memory = {memory, memory->data()};
      buffer.bytes = bytes;
    }
  }
  messages.buffers.push_back(std::move(buffer));
  return static_cast<std::byte*>(messages.buffers.back().memory.get());
}

RowConverter::Messages RowConverter::convert(ExchangeRequest& request, const RowTypes& types) {
  Messages messages;
  const auto travelling = [&](const auto& rows) -> Rows {
    if (compiler_ != nullptr && side_ == nullptr) side_ = std::make_unique<RankSide>(compiler_, compiler_->device());
    return {take(rows.bytes() / 2, messages), rows.count, rows.row_bytes / 2, 0, nullptr};
  };
  for (SendRows& send : request.sends) {
    if (!types.converts(send.peer) || send.rows.bytes() == 0) continue;
    const Rows packed = travelling(send.rows);
    if (side_ != nullptr) {
      side_->move(send.rows, packed, cuda::RowAction::narrow);
    } else {
      narrow_on_host(send.rows, packed);
    }
    send.rows = {packed.data, packed.count, packed.row_bytes, 0, nullptr};
  }
  for (ReceiveRows& receive : request.receives) {
    if (!types.converts(receive.peer) || receive.rows.bytes() == 0) continue;
    const Rows packed = travelling(receive.rows);
    messages.received.push_back({{packed.data, packed.count, packed.row_bytes, 0, nullptr}, receive.rows, receive.add});
    receive.rows = packed;
    receive.add = std::nullopt;
  }
  return messages;
}

void RowConverter::finish(Messages& messages) {
  for (const Messages::Received& each : messages.received) {
    const bool add = each.add.has_value();
    if (side_ != nullptr) {
      side_->move(each.from, each.to, add ? cuda::RowAction::widen_add : cuda::RowAction::widen);
    } else {
      widen_on_host(each.from, each.to, add);
    }
  }
  // The buffers may be used again at once. On a GPU, the work that reads them is queued before
  // whatever writes to them next.
  for (RankBuffer& buffer : messages.buffers) {
    if (side_ != nullptr) {
      side_->buffers->give(std::move(buffer));
    } else {
      free_.push_back(std::move(buffer));
    }
  }
  messages.buffers.clear();
}

}  // namespace nacre

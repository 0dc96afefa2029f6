#include "nacre/engine/rank_columns.h"

#include <cstring>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/dfg/columns.h"
#include "nacre/engine/gpu/staging.h"

namespace nacre {

RankColumns::RankColumns(const Partition& partition, std::vector<double> shares, int rank,
                         std::shared_ptr<Device> device, Array<NodeId> order)
    : partition_(&partition),
      shares_(std::move(shares)),
      rank_(rank),
      device_(std::move(device)),
      order_(std::move(order)) {
  if (shares_.empty()) shares_.assign(static_cast<size_t>(partition.num_parts), 1.0);
  NACRE_CHECK(static_cast<int>(shares_.size()) == partition.num_parts,
              "there must be one share of the columns for each rank");
}

int64_t RankColumns::count(int rank, int64_t width) const {
  const std::vector<int64_t> bounds = column_bounds(width, shares_);
  return bounds[rank + 1] - bounds[rank];
}

std::shared_ptr<const uint32_t> RankColumns::in_memory(std::vector<uint32_t> list) const {
  if (device_ == nullptr) {
    const auto keep = std::make_shared<const std::vector<uint32_t>>(std::move(list));
    return {keep, keep->data()};
  }
  const auto bytes = static_cast<int64_t>(list.size() * sizeof(uint32_t));
  const std::shared_ptr<void> memory = allocate_on(device_, bytes);
  if (bytes > 0) device_->upload(memory.get(), list.data(), bytes);
  return {memory, static_cast<const uint32_t*>(memory.get())};
}

const std::vector<RankColumns::Owned>& RankColumns::owned() {
  if (!owned_.empty()) return owned_;
  std::vector<std::vector<uint32_t>> numbers(shares_.size());
  const Array<int32_t>& part = partition_->part;
  for (int64_t v = 0; v < part.size(); ++v) numbers[part[v]].push_back(static_cast<uint32_t>(v));
  for (std::vector<uint32_t>& list : numbers) {
    const auto count = static_cast<int64_t>(list.size());
    owned_.push_back({in_memory(std::move(list)), count});
  }
  if (!order_.empty()) sorted_ = in_memory(std::vector<uint32_t>(order_.begin(), order_.end()));
  return owned_;
}

ExchangeRequest RankColumns::to_columns(const std::byte* own, std::byte* all, int64_t width, int64_t element_bytes) {
  const std::vector<int64_t> bounds = column_bounds(width, shares_);
  ExchangeRequest request;
  request.name = "to_columns";
  const int64_t rows = owned()[rank_].count, row_bytes = (bounds[rank_ + 1] - bounds[rank_]) * element_bytes;
  for (int r = 0; r < static_cast<int>(shares_.size()); ++r) {
    const int64_t begin = bounds[r] * element_bytes, bytes = bounds[r + 1] * element_bytes - begin;
    const Owned& theirs = owned()[r];
    if (rows * bytes > 0)
      request.sends.push_back({r, {own + begin, rows, bytes, width * element_bytes, sorted_.get()}});
    if (theirs.count * row_bytes > 0)
      request.receives.push_back({r, {all, theirs.count, row_bytes, 0, theirs.numbers.get()}});
  }
  return request;
}

ExchangeRequest RankColumns::to_rows(const std::byte* all, std::byte* own, int64_t width, int64_t element_bytes) {
  const std::vector<int64_t> bounds = column_bounds(width, shares_);
  ExchangeRequest request;
  request.name = "to_rows";
  const int64_t rows = owned()[rank_].count, row_bytes = (bounds[rank_ + 1] - bounds[rank_]) * element_bytes;
  for (int r = 0; r < static_cast<int>(shares_.size()); ++r) {
    const int64_t begin = bounds[r] * element_bytes, bytes = bounds[r + 1] * element_bytes - begin;
    const Owned& theirs = owned()[r];
    if (theirs.count * row_bytes > 0)
      request.sends.push_back({r, {all, theirs.count, row_bytes, 0, theirs.numbers.get()}});
    if (rows * bytes > 0)
      request.receives.push_back({r, {own + begin, rows, bytes, width * element_bytes, sorted_.get()}});
  }
  return request;
}

void RankColumns::clear(void* all, int64_t element_bytes) const {
  const int64_t bytes = partition_->part.size() * element_bytes;
  if (bytes == 0) return;
  if (device_ != nullptr) return device_->fill(all, 0, bytes);
  std::memset(all, 0, static_cast<size_t>(bytes));
}

}  // namespace nacre

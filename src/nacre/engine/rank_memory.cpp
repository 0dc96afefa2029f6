#include "nacre/engine/rank_memory.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/rank_side.h"

namespace nacre {
namespace {

constexpr int64_t kHostBytes = 1 << 18;  // bytes that one thread of the host moves at a time

class Offer final : public RankOffer {
 public:
  // Makes an offer of rows where they lie.
  explicit Offer(RankSide& owner) : owner_(owner) {}
  // Makes an offer of a copy, which is in `buffer`.
  Offer(RankSide& owner, RankBuffer buffer) : owner_(owner), buffer_(std::move(buffer)) {}
  ~Offer() override {
    if (buffer_.memory != nullptr) owner_.buffers->give(std::move(buffer_));
  }
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  bool is_copy() const override { return buffer_.memory != nullptr; }
  void* memory() const { return buffer_.memory.get(); }
  // Makes readers of this offer wait until the owner's device has done everything that is queued
  // now.
  void publish() {
    if (owner_.device != nullptr) ready_ = owner_.device->record();
  }
  // Makes the rank that reads an offer wait until the device of its owner has made the offer. A
  // rank on a GPU lets the stream wait that it uses now; a rank on the host waits in its thread.
  void wait(const RankSide& reader) const {
    if (ready_ == nullptr) return;
    if (reader.device != nullptr) {
      reader.device->wait_for(ready_);
    } else {
      owner_.device->await(ready_);
    }
  }
  void is_read_until(const BufferReader& reader) {
    const std::lock_guard lock(mutex_);
    buffer_.readers.push_back(reader);
  }

 private:
  RankSide& owner_;
  RankBuffer buffer_;
  DeviceEvent ready_;  // null: the bytes are there
  std::mutex mutex_;   // guards the list of readers
};

class Ticket final : public RankTicket {
 public:
  Ticket(const RankSide& owner, BesideWork work) : owner_(owner), work_(std::move(work)) {}
  // Returns whether the work is that of this rank.
  bool is_of(const RankSide& side) const { return &side == &owner_; }
  const BesideWork& work() const { return work_; }

 private:
  const RankSide& owner_;
  BesideWork work_;
};

class DeviceRankMemory final : public RankMemory {
 public:
  explicit DeviceRankMemory(std::vector<std::shared_ptr<GpuCompiler>> compilers);

  bool shared(int from, int to) const override { return on_host(from) && on_host(to); }
  bool shares_sums() const override { return all_on_host_; }

  std::shared_ptr<RankTicket> begin(int rank) override {
    if (on_host(rank)) return nullptr;
    return std::make_shared<Ticket>(sides_[rank], BesideWork{nullptr, sides_[rank].device->record()});
  }
  std::shared_ptr<RankOffer> offer(int from, int to, const ConstRows& rows) override;
  std::shared_ptr<RankOffer> offer_array(int rank, SumType type, const void* array, int64_t count) override;
  std::shared_ptr<RankTicket> take(int to, const Copy& copy, RankOffer& offer) override;
  std::shared_ptr<RankTicket> take_sum(int rank, SumType type, std::span<const std::shared_ptr<RankOffer>> offers,
                                       void* out, int64_t count) override;
  void wait(int rank, RankTicket& ticket) override;
  void measure(int rank, bool on) override { sides_[rank].measuring = on && !on_host(rank); }
  DeviceSeconds take_seconds(int rank) override { return sides_[rank].take_seconds(); }

 private:
  bool on_host(int rank) const { return sides_[rank].device == nullptr; }
  bool direct(int from, int to) const { return direct_[from * sides_.size() + to] != 0; }

  std::vector<RankSide> sides_;
  std::vector<char> direct_;  // for each sender and receiver: whether the receiver reads its rows
  bool all_on_host_ = true;
  bool all_direct_ = true;
};

// ---- Work of the host.

void move_on_host(const ConstRows& from, const Rows& to, const std::optional<SumType>& add) {
  const int64_t chunk = std::max<int64_t>(1, kHostBytes / std::max<int64_t>(1, from.row_bytes));
  parallel_for(from.count, chunk, [&](int64_t begin, int64_t end) {
    if (add) {
      add_rows(*add, from, to, begin, end);
    } else {
      copy_rows(from, to, begin, end);
    }
  });
}

template <class T>
void sum_on_host(const std::vector<void*>& arrays, void* out, int64_t count) {
  parallel_for(count, kHostBytes / static_cast<int64_t>(sizeof(T)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T sum = static_cast<const T*>(arrays[0])[i];
      for (size_t r = 1; r < arrays.size(); ++r) sum += static_cast<const T*>(arrays[r])[i];
      static_cast<T*>(out)[i] = sum;
    }
  });
}

// ---- The memory of all ranks.

DeviceRankMemory::DeviceRankMemory(std::vector<std::shared_ptr<GpuCompiler>> compilers) {
  std::shared_ptr<Device> allocator;
  for (const auto& compiler : compilers) {
    if (compiler != nullptr && allocator == nullptr) allocator = compiler->device();
  }
  for (auto& compiler : compilers) sides_.emplace_back(std::move(compiler), allocator);
  for (const RankSide& from : sides_) {
    for (const RankSide& to : sides_) {
      const bool direct = from.device != nullptr && to.device != nullptr && to.device->reaches(*from.device);
      direct_.push_back(direct ? 1 : 0);
      all_direct_ &= direct;
      all_on_host_ &= from.device == nullptr;
    }
  }
}

std::shared_ptr<RankOffer> DeviceRankMemory::offer(int from, int to, const ConstRows& rows) {
  RankSide& side = sides_[from];
  if (direct(from, to)) {
    auto offer = std::make_shared<Offer>(side);
    offer->publish();
    return offer;
  }
  auto offer = std::make_shared<Offer>(side, side.buffers->take(rows.bytes(), true));
  const Rows packed = {static_cast<std::byte*>(offer->memory()), rows.count, rows.row_bytes, 0, nullptr};
  if (on_host(from)) {
    move_on_host(rows, packed, std::nullopt);
  } else {
    side.measured(&DeviceSeconds::moved, [&] { side.move(rows, packed); });
  }
  offer->publish();
  return offer;
}

std::shared_ptr<RankOffer> DeviceRankMemory::offer_array(int rank, SumType type, const void* array, int64_t count) {
  RankSide& side = sides_[rank];
  const int64_t bytes = count * bytes_of(type);
  auto offer = std::make_shared<Offer>(side, side.buffers->take(bytes, !all_direct_));
  if (bytes == 0) return offer;
  if (on_host(rank)) {
    std::memcpy(offer->memory(), array, static_cast<size_t>(bytes));
  } else if (all_direct_) {
    side.device->copy(offer->memory(), array, bytes);
  } else {
    side.move(as_rows<ConstRows>(type, static_cast<const std::byte*>(array), count),
              as_rows<Rows>(type, static_cast<std::byte*>(offer->memory()), count));
  }
  offer->publish();
  return offer;
}

std::shared_ptr<RankTicket> DeviceRankMemory::take(int to, const Copy& copy, RankOffer& offered) {
  auto& offer = static_cast<Offer&>(offered);
  RankSide& side = sides_[to];
  ConstRows from = copy.from;
  if (offer.is_copy()) from = {static_cast<const std::byte*>(offer.memory()), from.count, from.row_bytes, 0, nullptr};
  if (on_host(to)) {
    offer.wait(side);
    move_on_host(from, copy.to, copy.add);
    return nullptr;
  }
  const Beside beside(*side.device);
  side.device->wait_for(static_cast<const Ticket&>(*copy.after).work().to);
  offer.wait(side);
  const BesideWork work =
      side.beside(&DeviceSeconds::moved, [&] { side.move(from, copy.to, received_action(copy.add)); });
  if (offer.is_copy()) offer.is_read_until({side.device.get(), work.to});
  return std::make_shared<Ticket>(side, work);
}

// Makes the device of the rank wait for the work of a ticket. A rank on the host has no tickets,
// because its thread does the work itself.
void DeviceRankMemory::wait(int rank, RankTicket& ticket) {
  RankSide& side = sides_[rank];
  const auto& of_work = static_cast<const Ticket&>(ticket);
  if (of_work.is_of(side)) return side.wait_for(of_work.work());
  side.measured(&DeviceSeconds::waited, [&] { side.device->wait_for(of_work.work().to); });
}

std::shared_ptr<RankTicket> DeviceRankMemory::take_sum(int rank, SumType type,
                                                       std::span<const std::shared_ptr<RankOffer>> offers, void* out,
                                                       int64_t count) {
  RankSide& side = sides_[rank];
  std::optional<Beside> beside;
  if (!on_host(rank)) beside.emplace(*side.device);
  std::vector<void*> memory;
  for (const auto& offered : offers) {
    auto& offer = static_cast<Offer&>(*offered);
    // One of these offers is the rank's own. So after the waits, all that the rank queued before
    // the call has ended, too.
    offer.wait(side);
    memory.push_back(offer.memory());
  }
  if (on_host(rank)) {
    type == SumType::f32 ? sum_on_host<float>(memory, out, count) : sum_on_host<double>(memory, out, count);
    return nullptr;
  }
  const BesideWork work = side.beside(&DeviceSeconds::reduced, [&] { side.sum(type, memory, out, count); });
  for (const auto& offered : offers) static_cast<Offer&>(*offered).is_read_until({side.device.get(), work.to});
  return std::make_shared<Ticket>(side, work);
}

}  // namespace

std::shared_ptr<RankMemory> make_rank_memory(std::vector<std::shared_ptr<GpuCompiler>> compilers) {
  return std::make_shared<DeviceRankMemory>(std::move(compilers));
}

std::shared_ptr<RankMemory> make_rank_memory(const std::vector<std::shared_ptr<Device>>& devices) {
  std::vector<std::shared_ptr<GpuCompiler>> compilers;
  for (const auto& device : devices) {
    DevicePlugin* plugin = device == nullptr ? nullptr : device_plugin();
    NACRE_CHECK(device == nullptr || plugin != nullptr, "there is a device without a plug-in");
    // These kernels are few and small, so they are compiled at their first use.
    compilers.push_back(device == nullptr ? nullptr : GpuCompiler::open(*plugin, device, 0));
  }
  return make_rank_memory(std::move(compilers));
}

}  // namespace nacre

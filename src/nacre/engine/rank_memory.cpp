#include "nacre/engine/rank_memory.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/context.h"
#include "nacre/engine/gpu/function_key.h"
#include "nacre/engine/gpu/rank_buffers.h"
#include "nacre/kernel/cuda/exchange.h"

namespace nacre {
namespace {

constexpr int64_t kHostBytes = 1 << 18;  // bytes that one thread of the host moves at a time

// One rank: its device, if it has one, and its copies for others.
struct Side {
  std::shared_ptr<Device> device;       // null: host memory
  std::shared_ptr<GpuContext> context;  // launches the kernels of this file
  std::shared_ptr<RankBuffers> buffers;

  // Work of the device between two of its events. `what` says how its seconds are counted.
  struct Span {
    double DeviceSeconds::*what;
    DeviceEvent from, to;
  };
  bool measuring = false;
  std::vector<Span> spans;

  // Calls queue(), which queues work on the device, and measures the work if asked to.
  template <class Queue>
  void measured(double DeviceSeconds::*what, const Queue& queue) {
    if (!measuring) return queue();
    DeviceEvent from = device->record();
    queue();
    spans.push_back({what, std::move(from), device->record()});
  }
};

class Offer final : public RankOffer {
 public:
  // Offers rows where they lie.
  explicit Offer(Side& owner) : owner_(owner) {}
  // Offers a copy.
  Offer(Side& owner, RankBuffer buffer) : owner_(owner), buffer_(std::move(buffer)) {}
  ~Offer() override {
    if (buffer_.memory != nullptr) owner_.buffers->give(std::move(buffer_));
  }
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  bool is_copy() const override { return buffer_.memory != nullptr; }
  void* memory() const { return buffer_.memory.get(); }
  // Says that everything that the owner has queued until now must be done before others read.
  void publish() {
    if (owner_.device != nullptr) ready_ = owner_.device->record();
  }
  // Makes the reader's thread or its device wait for the owner's device.
  void wait(Side& reader) const {
    if (ready_ == nullptr) return;
    if (reader.device != nullptr) {
      reader.measured(&DeviceSeconds::waited, [&] { reader.device->wait_for(ready_); });
    } else {
      owner_.device->await(ready_);
    }
  }
  void is_read_until(const BufferReader& reader) {
    const std::lock_guard lock(mutex_);
    buffer_.readers.push_back(reader);
  }

 private:
  Side& owner_;
  RankBuffer buffer_;
  DeviceEvent ready_;  // null: the bytes are there
  std::mutex mutex_;   // guards the list of readers
};

class Ticket final : public RankTicket {
 public:
  explicit Ticket(DeviceEvent event) : event_(std::move(event)) {}
  const DeviceEvent& event() const { return event_; }

 private:
  DeviceEvent event_;
};

class DeviceRankMemory final : public RankMemory {
 public:
  explicit DeviceRankMemory(std::vector<std::shared_ptr<GpuCompiler>> compilers);

  bool shared(int from, int to) const override { return on_host(from) && on_host(to); }
  bool shares_sums() const override { return all_on_host_; }

  std::shared_ptr<RankOffer> offer(int from, int to, const ConstRows& rows) override;
  std::shared_ptr<RankOffer> offer_part(int rank, SumType type, const void* part, int64_t count) override;
  std::shared_ptr<RankTicket> take(int to, const Copy& copy, RankOffer& offer) override;
  void take_sum(int rank, SumType type, std::span<const std::shared_ptr<RankOffer>> parts, void* out,
                int64_t count) override;
  void wait(int rank, RankTicket& ticket) override {
    Side& side = sides_[rank];
    side.measured(&DeviceSeconds::waited, [&] { side.device->wait_for(static_cast<const Ticket&>(ticket).event()); });
  }
  void measure(int rank, bool on) override { sides_[rank].measuring = on && !on_host(rank); }
  DeviceSeconds take_seconds(int rank) override;

 private:
  bool on_host(int rank) const { return sides_[rank].device == nullptr; }
  bool direct(int from, int to) const { return direct_[from * sides_.size() + to] != 0; }

  std::vector<Side> sides_;
  std::vector<char> direct_;  // for each sender and receiver: whether the receiver reads its rows
  bool all_on_host_ = true;
  bool all_direct_ = true;
};

// ---- Work of a device.

// Queues a copy or an addition of rows on the device of a rank.
void queue_move(Side& side, const ConstRows& from, const Rows& to, bool add) {
  const auto bits =
      static_cast<uint64_t>(reinterpret_cast<uintptr_t>(from.data) | reinterpret_cast<uintptr_t>(to.data)) |
      static_cast<uint64_t>(from.row_bytes | from.step() | to.step());
  NACRE_CHECK(bits % 4 == 0 && from.step() == from.row_bytes && to.step() == to.row_bytes,
              "ranks on GPUs exchange whole rows of floats only");
  cuda::RowMove move;
  move.floats = bits % 16 == 0 ? 4 : bits % 8 == 0 ? 2 : 1;
  move.words = from.row_bytes / (4 * move.floats);
  move.add = add;
  const GpuFunction& function =
      side.context->compiler().function(FunctionKey("move rows").add(move.floats).add(move.words).add(move.add).bytes(),
                                        [&] { return cuda::RowSource{cuda::move_rows(move)}; });
  const cuda::MoveRowsParams params = {
      .from = from.data, .from_index = from.index, .to = to.data, .to_index = to.index, .rows = from.count};
  side.context->launch(function, cuda::move_blocks(move, from.count), params)();
}

void queue_sum(Side& side, SumType type, const std::vector<void*>& parts, void* out, int64_t count) {
  const bool doubles = type == SumType::f64;
  const int number = static_cast<int>(parts.size());
  const GpuFunction& function =
      side.context->compiler().function(FunctionKey("sum parts").add(number).add(doubles).bytes(),
                                        [&] { return cuda::RowSource{cuda::sum_parts(number, doubles)}; });
  cuda::LaunchParams params(cuda::SumPartsParams{.out = out, .count = count});
  params.operands(parts);
  side.context->launch(function, (count + cuda::kSumThreads - 1) / cuda::kSumThreads, params)();
}

// Returns an array as rows of four elements, or of one if their number does not allow that.
template <class Range>
Range as_rows(SumType type, decltype(Range::data) data, int64_t count) {
  const int64_t each = count % 4 == 0 ? 4 : 1;
  return {data, count / each, each * bytes_of(type), 0, nullptr};
}

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
void sum_on_host(const std::vector<void*>& parts, void* out, int64_t count) {
  parallel_for(count, kHostBytes / static_cast<int64_t>(sizeof(T)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T sum = static_cast<const T*>(parts[0])[i];
      for (size_t r = 1; r < parts.size(); ++r) sum += static_cast<const T*>(parts[r])[i];
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
  for (auto& compiler : compilers) {
    Side& side = sides_.emplace_back();
    if (compiler != nullptr) {
      side.device = compiler->device();
      side.context = std::make_shared<GpuContext>(std::move(compiler), std::make_shared<GraphViews>(), GpuOptions{});
    }
    side.buffers = std::make_shared<RankBuffers>(side.device, allocator);
  }
  for (const Side& from : sides_) {
    for (const Side& to : sides_) {
      const bool direct = from.device != nullptr && to.device != nullptr && to.device->reaches(*from.device);
      direct_.push_back(direct ? 1 : 0);
      all_direct_ &= direct;
      all_on_host_ &= from.device == nullptr;
    }
  }
}

std::shared_ptr<RankOffer> DeviceRankMemory::offer(int from, int to, const ConstRows& rows) {
  Side& side = sides_[from];
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
    side.measured(&DeviceSeconds::moved, [&] { queue_move(side, rows, packed, false); });
  }
  offer->publish();
  return offer;
}

std::shared_ptr<RankOffer> DeviceRankMemory::offer_part(int rank, SumType type, const void* part, int64_t count) {
  Side& side = sides_[rank];
  const int64_t bytes = count * bytes_of(type);
  auto offer = std::make_shared<Offer>(side, side.buffers->take(bytes, !all_direct_));
  if (bytes == 0) return offer;
  if (on_host(rank)) {
    std::memcpy(offer->memory(), part, static_cast<size_t>(bytes));
  } else if (all_direct_) {
    side.device->copy(offer->memory(), part, bytes);
  } else {
    queue_move(side, as_rows<ConstRows>(type, static_cast<const std::byte*>(part), count),
               as_rows<Rows>(type, static_cast<std::byte*>(offer->memory()), count), false);
  }
  offer->publish();
  return offer;
}

std::shared_ptr<RankTicket> DeviceRankMemory::take(int to, const Copy& copy, RankOffer& offered) {
  auto& offer = static_cast<Offer&>(offered);
  Side& side = sides_[to];
  ConstRows from = copy.from;
  if (offer.is_copy()) from = {static_cast<const std::byte*>(offer.memory()), from.count, from.row_bytes, 0, nullptr};
  offer.wait(side);
  if (on_host(to)) {
    move_on_host(from, copy.to, copy.add);
    return nullptr;
  }
  NACRE_CHECK(copy.add.value_or(SumType::f32) == SumType::f32, "ranks on GPUs add rows of floats only");
  side.measured(&DeviceSeconds::moved, [&] { queue_move(side, from, copy.to, copy.add.has_value()); });
  DeviceEvent end = side.device->record();
  if (!offer.is_copy()) return std::make_shared<Ticket>(std::move(end));
  offer.is_read_until({side.device.get(), std::move(end)});
  return nullptr;
}

void DeviceRankMemory::take_sum(int rank, SumType type, std::span<const std::shared_ptr<RankOffer>> parts, void* out,
                                int64_t count) {
  Side& side = sides_[rank];
  std::vector<void*> memory;
  for (const auto& part : parts) {
    auto& offer = static_cast<Offer&>(*part);
    offer.wait(side);
    memory.push_back(offer.memory());
  }
  if (on_host(rank))
    return type == SumType::f32 ? sum_on_host<float>(memory, out, count) : sum_on_host<double>(memory, out, count);
  side.measured(&DeviceSeconds::reduced, [&] { queue_sum(side, type, memory, out, count); });
  const BufferReader reader = {side.device.get(), side.device->record()};
  for (const auto& part : parts) static_cast<Offer&>(*part).is_read_until(reader);
}

DeviceSeconds DeviceRankMemory::take_seconds(int rank) {
  Side& side = sides_[rank];
  DeviceSeconds sum;
  for (const Side::Span& span : side.spans) sum.*span.what += side.device->elapsed(span.from, span.to);
  side.spans.clear();
  return sum;
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

#include "nacre/engine/rank_messages.h"

#include <cstring>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/compiler.h"
#include "nacre/engine/gpu/staging.h"

namespace nacre {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;
constexpr int64_t kChunkRows = 1 << 12;

ConstRows readable(const Rows& rows) { return {rows.data, rows.count, rows.row_bytes, rows.pitch, rows.index}; }

}  // namespace

class RankMessages::Pending final : public PendingCommunication {
 public:
  explicit Pending(PendingCall call) : call_(std::move(call)) {}
  void finish() override { call_.wait(); }

 private:
  PendingCall call_;
};

// Carries out an exchange of rows, some of which may have to be converted.
class RankMessages::PendingRows final : public PendingCommunication {
 public:
  PendingRows(RankMessages& owner, ExchangeRequest request, const RowTypes& types)
      : owner_(owner),
        converted_(owner.converter_.convert(request, types)),
        call_(owner.communicator_.start_exchange(request)) {}
  void finish() override {
    call_.wait();
    owner_.converter_.finish(converted_);
  }

 private:
  RankMessages& owner_;
  RowConverter::Messages converted_;
  PendingCall call_;  // comes last: a call that is given up no longer touches the rows above
};

// Receives the rows that the peers have for own vertices and adds them, peer by peer.
class RankMessages::PendingAdd final : public PendingCommunication {
 public:
  PendingAdd(RankMessages& owner, SumType type, void* to, Bytes bytes, ExchangeRequest& request, const RowTypes& types)
      : owner_(owner), type_(type), to_(static_cast<std::byte*>(to)), bytes_(std::move(bytes)) {
    int64_t at = 0;
    for (ReceiveRows& receive : request.receives) {
      receive.rows.data = bytes_.data() + at;
      at += receive.rows.bytes();
    }
    receives_ = request.receives;
    converted_ = owner.converter_.convert(request, types);
    call_ = std::make_unique<PendingCall>(owner.communicator_.start_exchange(request));
  }

  void finish() override {
    call_->wait();
    owner_.converter_.finish(converted_);
    for (size_t p = 0; p < receives_.size(); ++p) {
      const ConstRows from = readable(receives_[p].rows);
      const Rows to = {to_, from.count, from.row_bytes, 0, owner_.send_[p].get()};
      parallel_for(from.count, kChunkRows, [&](int64_t begin, int64_t end) { add_rows(type_, from, to, begin, end); });
    }
    owner_.received_.push_back(std::move(bytes_));
  }

 private:
  RankMessages& owner_;
  SumType type_;
  std::byte* to_;
  Bytes bytes_;
  std::vector<ReceiveRows> receives_;
  RowConverter::Messages converted_;
  std::unique_ptr<PendingCall> call_;
};

RankMessages::RankMessages(std::shared_ptr<const LocalGraph> local, RankColumns columns, Communicator& communicator,
                           const std::shared_ptr<GpuCompiler>& compiler)
    : local_(std::move(local)),
      columns_(std::move(columns)),
      communicator_(communicator),
      device_(compiler ? compiler->device() : nullptr),
      converter_(compiler) {
  for (const PeerRows& peer : local_->peers) {
    if (device_ == nullptr) {
      send_.emplace_back(local_, peer.send.data());
      continue;
    }
    const int64_t bytes = peer.send.size() * static_cast<int64_t>(sizeof(NodeId));
    const std::shared_ptr<void> memory = allocate_on(device_, bytes);
    if (bytes > 0) device_->upload(memory.get(), peer.send.data(), bytes);
    send_.emplace_back(memory, static_cast<const uint32_t*>(memory.get()));
  }
}

void RankMessages::copy(void* to, const void* from, int64_t bytes) const {
  if (to == from || bytes == 0) return;
  if (device_ != nullptr) return device_->copy(to, from, bytes);
  parallel_for(bytes, kChunkBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

Rows RankMessages::halo_of(void* all, const PeerRows& peer, int64_t row_bytes) const {
  std::byte* halo = static_cast<std::byte*>(all) + local_->num_own() * row_bytes;
  return {halo + peer.halo_begin * row_bytes, peer.halo_end - peer.halo_begin, row_bytes, 0, nullptr};
}

std::unique_ptr<PendingCommunication> RankMessages::start_exchange(const void* from, void* to, int64_t row_bytes,
                                                                   const RowTypes& types) {
  ExchangeRequest request;
  for (size_t p = 0; p < send_.size(); ++p) {
    const PeerRows& peer = local_->peers[p];
    request.sends.push_back(
        {peer.part, {static_cast<const std::byte*>(from), peer.send.size(), row_bytes, 0, send_[p].get()}});
    request.receives.push_back({peer.part, halo_of(to, peer, row_bytes)});
  }
  auto pending = std::make_unique<PendingRows>(*this, std::move(request), types);
  copy(to, from, local_->num_own() * row_bytes);
  return pending;
}

std::unique_ptr<PendingCommunication> RankMessages::start_add(SumType type, const void* from, void* to, int64_t width,
                                                              const RowTypes& types) {
  const int64_t row_bytes = width * bytes_of(type);
  copy(to, from, local_->num_own() * row_bytes);
  ExchangeRequest request;
  request.name = "exchange_add";
  request.adds = true;
  for (size_t p = 0; p < send_.size(); ++p) {
    const PeerRows& peer = local_->peers[p];
    request.sends.push_back({peer.part, readable(halo_of(const_cast<void*>(from), peer, row_bytes))});
    Rows rows = {static_cast<std::byte*>(to), peer.send.size(), row_bytes, 0, send_[p].get()};
    if (device_ == nullptr) rows.index = nullptr;
    request.receives.push_back({peer.part, rows, device_ == nullptr ? std::nullopt : std::optional(type)});
  }
  if (device_ == nullptr) return add_on_host(type, to, row_bytes, request, types);
  return std::make_unique<PendingRows>(*this, std::move(request), types);
}

std::unique_ptr<PendingCommunication> RankMessages::add_on_host(SumType type, void* to, int64_t row_bytes,
                                                                ExchangeRequest& request, const RowTypes& types) {
  int64_t rows = 0;
  for (const PeerRows& peer : local_->peers) rows += peer.send.size();
  Bytes bytes;
  if (!received_.empty()) {
    bytes = std::move(received_.back());
    received_.pop_back();
  }
  if (static_cast<int64_t>(bytes.size()) < rows * row_bytes) bytes.resize(static_cast<size_t>(rows * row_bytes));
  return std::make_unique<PendingAdd>(*this, type, to, std::move(bytes), request, types);
}

std::unique_ptr<PendingCommunication> RankMessages::start_to_columns(const void* from, void* to, int64_t width,
                                                                     int64_t element_bytes) {
  if (columns_.count(communicator_.rank(), width) == 0) columns_.clear(to, element_bytes);
  return std::make_unique<Pending>(communicator_.start_exchange(
      columns_.to_columns(static_cast<const std::byte*>(from), static_cast<std::byte*>(to), width, element_bytes)));
}

std::unique_ptr<PendingCommunication> RankMessages::start_to_rows(const void* from, void* to, int64_t width,
                                                                  int64_t element_bytes) {
  return std::make_unique<Pending>(communicator_.start_exchange(
      columns_.to_rows(static_cast<const std::byte*>(from), static_cast<std::byte*>(to), width, element_bytes)));
}

std::unique_ptr<PendingCommunication> RankMessages::start_all_reduce(const float* from, float* to, int64_t count) {
  copy(to, from, count * static_cast<int64_t>(sizeof(float)));
  return std::make_unique<Pending>(communicator_.start_all_reduce(SumType::f32, to, count));
}

}  // namespace nacre

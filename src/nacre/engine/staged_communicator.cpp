#include "nacre/engine/staged_communicator.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/rank_side.h"
#include "nacre/engine/host_gather.h"

namespace nacre {
namespace {

// Stage: holds the GPU of a rank, and page-locked memory of the host that its rows go through.
class Stage {
 public:
  explicit Stage(const std::shared_ptr<GpuCompiler>& compiler)
      // The thread of the rank waits for the GPU before it writes to a buffer again, so the buffers
      // need no device that waits.
      : side_(compiler, compiler->device()), buffers_(nullptr, compiler->device()) {}

  Device& device() { return *side_.device; }
  RankSide& side() { return side_; }
  RankBuffer take(int64_t bytes) { return buffers_.take(bytes, true); }
  // Gives a buffer back that the GPU reads until `event`. Without `event`, only the host has read
  // it.
  void give(RankBuffer buffer, const DeviceEvent& event = nullptr) {
    if (event != nullptr) buffer.readers.push_back({side_.device.get(), event});
    buffers_.give(std::move(buffer));
  }

  // Waits for a call of the host, and measures how long the GPU was idle meanwhile.
  void wait(PendingCall& call, double DeviceSeconds::*what) {
    if (!side_.measuring) return call.wait();
    const DeviceEvent from = device().record();
    call.wait();
    const DeviceEvent to = device().record();
    const CallCounters& counters = call.counters();
    const double idle = counters.waited > 0 ? counters.idle / counters.waited : 0;
    side_.spans.push_back({&DeviceSeconds::waited, from, to, idle});
    side_.spans.push_back({what, from, to, 1 - idle});
  }

 private:
  RankSide side_;
  RankBuffers buffers_;
};

Rows packed_rows(const RankBuffer& buffer, int64_t count, int64_t row_bytes) {
  return {static_cast<std::byte*>(buffer.memory.get()), count, row_bytes, 0, nullptr};
}

ConstRows readable(const Rows& rows) { return {rows.data, rows.count, rows.row_bytes, rows.pitch, rows.index}; }

class StagedExchange final : public CommOperation {
 public:
  StagedExchange(std::shared_ptr<Stage> stage, const ExchangeRequest& request, Communicator& host)
      : stage_(std::move(stage)) {
    ExchangeRequest staged;
    staged.name = request.name;
    for (const SendRows& send : request.sends) {
      if (send.rows.bytes() == 0) continue;
      const Rows packed =
          packed_rows(sent_.emplace_back(stage_->take(send.rows.bytes())), send.rows.count, send.rows.row_bytes);
      stage_->side().measured(&DeviceSeconds::moved, [&] { stage_->side().move(send.rows, packed); });
      staged.sends.push_back({send.peer, readable(packed)});
    }
    if (!sent_.empty()) stage_->device().await(stage_->device().record());
    for (const ReceiveRows& receive : request.receives) {
      if (receive.rows.bytes() == 0) continue;
      received_.push_back({receive, stage_->take(receive.rows.bytes())});
      staged.receives.push_back({receive.peer, received_.back().packed()});
    }
    // The rows are sorted by sender, so that they are added in the order of the ranks.
    std::sort(received_.begin(), received_.end(), [](const auto& a, const auto& b) { return a.to.peer < b.to.peer; });
    call_ = std::make_unique<PendingCall>(host.start_exchange(staged));
  }

  void finish() override {
    stage_->wait(*call_, &DeviceSeconds::moved);
    for (RankBuffer& buffer : sent_) stage_->give(std::move(buffer));
    stage_->side().measured(&DeviceSeconds::moved, [&] {
      for (const Received& each : received_)
        stage_->side().move(readable(each.packed()), each.to.rows, received_action(each.to.add));
    });
    if (received_.empty()) return;
    const DeviceEvent read = stage_->device().record();
    for (Received& each : received_) stage_->give(std::move(each.buffer), read);
  }
  double idle_seconds() const override { return call_->counters().idle; }

 private:
  struct Received {
    ReceiveRows to;
    RankBuffer buffer;

    Rows packed() const { return packed_rows(buffer, to.rows.count, to.rows.row_bytes); }
  };

  std::shared_ptr<Stage> stage_;
  std::vector<RankBuffer> sent_;
  std::vector<Received> received_;
  // The call is the last member, so it is destroyed first. A call that is destroyed early no longer
  // touches the buffers.
  std::unique_ptr<PendingCall> call_;
};

class StagedSum final : public CommOperation {
 public:
  StagedSum(std::shared_ptr<Stage> stage, SumType type, void* data, int64_t count, const char* name, Communicator& host)
      : stage_(std::move(stage)),
        device_rows_(as_rows<Rows>(type, static_cast<std::byte*>(data), count)),
        buffer_(stage_->take(device_rows_.bytes())) {
    if (count > 0) {
      stage_->side().measured(&DeviceSeconds::reduced, [&] { stage_->side().move(readable(device_rows_), packed()); });
      stage_->device().await(stage_->device().record());
    }
    call_ = std::make_unique<PendingCall>(host.start_all_reduce(type, buffer_.memory.get(), count, name));
  }

  void finish() override {
    stage_->wait(*call_, &DeviceSeconds::reduced);
    if (device_rows_.count == 0) return stage_->give(std::move(buffer_));
    stage_->side().measured(&DeviceSeconds::reduced, [&] { stage_->side().move(readable(packed()), device_rows_); });
    stage_->give(std::move(buffer_), stage_->device().record());
  }
  double idle_seconds() const override { return call_->counters().idle; }

 private:
  Rows packed() const { return packed_rows(buffer_, device_rows_.count, device_rows_.row_bytes); }

  std::shared_ptr<Stage> stage_;
  Rows device_rows_;
  RankBuffer buffer_;
  std::unique_ptr<PendingCall> call_;  // the last member, so that it is destroyed first
};

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host, const std::shared_ptr<GpuCompiler>& compiler)
      : Communicator(host->rank(), host->size()), stage_(std::make_shared<Stage>(compiler)), host_(std::move(host)) {}

  RankFailure abort(const std::string& reason) override { return host_->abort(reason); }
  RankFailure pass_on(const RankFailure& failure) override { return host_->pass_on(failure); }
  bool failed() const override { return host_->failed(); }
  void measure(bool on) override { stage_->side().measuring = on; }
  DeviceSeconds take_seconds() override { return stage_->side().take_seconds(); }

 private:
  std::unique_ptr<CommOperation> begin(const ExchangeRequest& request) override {
    return std::make_unique<StagedExchange>(stage_, request, *host_);
  }
  std::unique_ptr<CommOperation> begin(const Reduction& sum) override {
    return std::make_unique<StagedSum>(stage_, sum.type, sum.data, sum.count, sum.name, *host_);
  }
  std::unique_ptr<CommOperation> begin(std::vector<std::string>& texts) override {
    return std::make_unique<HostGather>(texts, *host_);
  }

  std::shared_ptr<Stage> stage_;
  std::unique_ptr<Communicator> host_;
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> host,
                                                       const std::shared_ptr<GpuCompiler>& compiler) {
  return std::make_unique<StagedCommunicator>(std::move(host), compiler);
}

}  // namespace nacre

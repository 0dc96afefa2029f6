#include "nacre/engine/linked_communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/rank_side.h"
#include "nacre/engine/host_gather.h"

namespace nacre {
namespace {

// The watching thread checks this often whether another rank has failed.
constexpr auto kWatch = std::chrono::milliseconds(100);

// Holds what all calls of one rank use: its link, its device and the communicator of the host.
struct LinkedRank {
  LinkedRank(std::unique_ptr<Communicator> host_communicator, const std::shared_ptr<GpuCompiler>& compiler,
             std::unique_ptr<DeviceLink> device_link)
      : host(std::move(host_communicator)), side(compiler, compiler->device()), link(std::move(device_link)) {}

  Device& device() { return *side.device; }
  // Starts a call of the host's communicator that ends when all ranks have started theirs.
  PendingCall meet(const char* name) { return host->start_all_reduce(SumType::f32, nullptr, 0, name); }
  RankBuffer take(int64_t bytes) { return side.buffers->take(bytes, false); }
  void give(RankBuffer buffer, const DeviceEvent& read_until) {
    buffer.readers.push_back({side.device.get(), read_until});
    side.buffers->give(std::move(buffer));
  }

  std::unique_ptr<Communicator> host;
  RankSide side;
  std::unique_ptr<DeviceLink> link;
};

Rows rows_in(const RankBuffer& buffer, int64_t count, int64_t row_bytes) {
  return {static_cast<std::byte*>(buffer.memory.get()), count, row_bytes, 0, nullptr};
}

ConstRows readable(const Rows& rows) { return {rows.data, rows.count, rows.row_bytes, rows.pitch, rows.index}; }

// The base class of calls whose messages go over the link. Rows of a peer may lie in a buffer until
// wait() is called.
class LinkedOperation : public CommOperation {
 public:
  double idle_seconds() const override { return met_->counters().idle; }

 protected:
  explicit LinkedOperation(std::shared_ptr<LinkedRank> rank) : rank_(std::move(rank)) {}

  void send(int peer, const void* memory, int64_t bytes) { sends_.push_back({peer, const_cast<void*>(memory), bytes}); }
  void receive(int peer, void* memory, int64_t bytes) { receives_.push_back({peer, memory, bytes}); }
  // Returns memory that the call keeps until it has ended.
  const RankBuffer& lend(int64_t bytes) { return lent_.emplace_back(rank_->take(bytes)); }
  // Queues the messages of the call on the link.
  void start(const char* name) {
    met_ = std::make_unique<PendingCall>(rank_->meet(name));
    const DeviceEvent ready = rank_->device().record();
    moved_ = sends_.empty() && receives_.empty() ? ready : rank_->link->exchange(sends_, receives_, ready);
  }
  // Waits until all ranks have started the call, and makes the device wait for the messages. It is
  // not known how much of this time the device waits for other ranks, so all of it counts as
  // `what`.
  void meet(double DeviceSeconds::*what) {
    met_->wait();
    rank_->side.measured(what, [&] { rank_->device().wait_for(moved_); });
  }
  // Gives the buffers back. They are used again when the device has read them.
  void give_back() {
    const DeviceEvent now = rank_->device().record();
    for (RankBuffer& buffer : lent_) rank_->give(std::move(buffer), now);
    lent_.clear();
  }

  std::shared_ptr<LinkedRank> rank_;

 private:
  std::vector<LinkMessage> sends_, receives_;
  std::vector<RankBuffer> lent_;
  DeviceEvent moved_;
  std::unique_ptr<PendingCall> met_;
};

class LinkedExchange final : public LinkedOperation {
 public:
  LinkedExchange(std::shared_ptr<LinkedRank> rank, const ExchangeRequest& request) : LinkedOperation(std::move(rank)) {
    RankSide& side = rank_->side;
    for (const SendRows& message : request.sends) {
      const ConstRows& rows = message.rows;
      if (rows.bytes() == 0) continue;
      if (rows.dense()) {
        send(message.peer, rows.data, rows.bytes());
        continue;
      }
      const Rows packed = rows_in(lend(rows.bytes()), rows.count, rows.row_bytes);
      side.measured(&DeviceSeconds::moved, [&] { side.move(rows, packed); });
      send(message.peer, packed.data, packed.bytes());
    }
    for (const ReceiveRows& message : request.receives) {
      const Rows& rows = message.rows;
      if (rows.bytes() == 0) continue;
      if (rows.dense() && !message.add) {
        receive(message.peer, rows.data, rows.bytes());
        continue;
      }
      const Rows packed = rows_in(lend(rows.bytes()), rows.count, rows.row_bytes);
      receive(message.peer, packed.data, packed.bytes());
      unpacked_.push_back({message, packed});
    }
    // The rows are sorted by sender, so that they are added in the order of the ranks.
    std::sort(unpacked_.begin(), unpacked_.end(), [](const auto& a, const auto& b) { return a.to.peer < b.to.peer; });
    start(request.name);
  }

  void finish() override {
    meet(&DeviceSeconds::moved);
    RankSide& side = rank_->side;
    side.measured(&DeviceSeconds::moved, [&] {
      for (const Unpacked& each : unpacked_) side.move(readable(each.from), each.to.rows, received_action(each.to.add));
    });
    give_back();
  }

 private:
  struct Unpacked {
    ReceiveRows to;
    Rows from;
  };
  std::vector<Unpacked> unpacked_;
};

// Every rank sends its array to all others, and adds up all arrays in the order of the ranks. So
// the sum has the same bits as with every other communicator, which ncclAllReduce does not promise.
class LinkedSum final : public LinkedOperation {
 public:
  LinkedSum(std::shared_ptr<LinkedRank> rank, SumType type, void* data, int64_t count, const char* name)
      : LinkedOperation(std::move(rank)), type_(type), data_(data), count_(count) {
    const int own = rank_->host->rank();
    const int64_t bytes = count * bytes_of(type);
    for (int r = 0; count > 0 && r < rank_->host->size(); ++r) parts_.push_back(lend(bytes).memory.get());
    if (count > 0) rank_->device().copy(parts_[own], data, bytes);
    for (int r = 0; r < static_cast<int>(parts_.size()); ++r) {
      if (r == own) continue;
      send(r, parts_[own], bytes);
      receive(r, parts_[r], bytes);
    }
    start(name);
  }

  void finish() override {
    meet(&DeviceSeconds::reduced);
    if (count_ > 0) {
      rank_->side.measured(&DeviceSeconds::reduced, [&] { rank_->side.sum(type_, parts_, data_, count_); });
    }
    give_back();
  }

 private:
  SumType type_;
  void* data_;
  int64_t count_;
  std::vector<void*> parts_;  // the array of each rank
};

class LinkedCommunicator final : public Communicator {
 public:
  LinkedCommunicator(std::unique_ptr<Communicator> host, const std::shared_ptr<GpuCompiler>& compiler,
                     std::unique_ptr<DeviceLink> link)
      : Communicator(host->rank(), host->size()),
        rank_(std::make_shared<LinkedRank>(std::move(host), compiler, std::move(link))),
        watchdog_([this] { watch(); }) {}
  ~LinkedCommunicator() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    watchdog_.join();
    if (rank_->host->failed()) rank_->link->abort();
  }
  LinkedCommunicator(const LinkedCommunicator&) = delete;
  LinkedCommunicator& operator=(const LinkedCommunicator&) = delete;

  RankFailure abort(const std::string& reason) override { return rank_->host->abort(reason); }
  RankFailure pass_on(const RankFailure& failure) override { return rank_->host->pass_on(failure); }
  bool failed() const override { return rank_->host->failed(); }
  void measure(bool on) override { rank_->side.measuring = on; }
  DeviceSeconds take_seconds() override { return rank_->side.take_seconds(); }

 private:
  std::unique_ptr<CommOperation> begin(const ExchangeRequest& request) override {
    return std::make_unique<LinkedExchange>(rank_, request);
  }
  std::unique_ptr<CommOperation> begin(const Reduction& sum) override {
    return std::make_unique<LinkedSum>(rank_, sum.type, sum.data, sum.count, sum.name);
  }
  std::unique_ptr<CommOperation> begin(std::vector<std::string>& texts) override {
    return std::make_unique<HostGather>(texts, *rank_->host);
  }

  // The thread of the rank may be waiting for its GPU, and the GPU for a rank that has failed. So
  // another thread runs this function, which ends the link when a rank has failed.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kWatch, [this] { return ends_; })) {
      const std::string error = rank_->link->error();
      if (!error.empty()) rank_->host->abort("NCCL: " + error);
      if (!rank_->host->failed()) continue;
      rank_->link->abort();
      return;
    }
  }

  std::shared_ptr<LinkedRank> rank_;
  std::mutex mutex_;  // guards ends_
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread watchdog_;
};

}  // namespace

std::unique_ptr<Communicator> make_linked_communicator(std::unique_ptr<Communicator> host,
                                                       const std::shared_ptr<GpuCompiler>& compiler,
                                                       std::unique_ptr<DeviceLink> link) {
  return std::make_unique<LinkedCommunicator>(std::move(host), compiler, std::move(link));
}

}  // namespace nacre

#include "nacre/cluster/packet_hub.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "nacre/base/log.h"
#include "nacre/cluster/packet_group.h"

namespace nacre {
namespace {

using Microseconds = std::chrono::microseconds;

// Processes often share cores. So a thread that waits for packets gives up its core at once, and
// after kYields such yields without a packet it sleeps.
constexpr int kYields = 20;
constexpr int kLongestSleep = 500;    // microseconds that a rank sleeps at most while it waits
constexpr int kLongestPause = 5000;   // microseconds that the helper sleeps at most
constexpr double kLookSeconds = 0.5;  // seconds between two checks whether a process has ended
constexpr double kFlushSeconds = 2;

int doubled(int first, int times, int most) { return std::min(most, first << std::min(times, 16)); }

class PacketOperation final : public CommOperation {
 public:
  PacketOperation(std::shared_ptr<PacketHub> hub, std::shared_ptr<PacketGroup> group, uint64_t number)
      : hub_(std::move(hub)), group_(std::move(group)), number_(number) {}
  ~PacketOperation() override {
    if (!finished_) group_->give_up(number_);
  }
  PacketOperation(const PacketOperation&) = delete;
  PacketOperation& operator=(const PacketOperation&) = delete;

  void finish() override {
    idle_ = group_->finish(number_);
    finished_ = true;
  }
  double idle_seconds() const override { return idle_; }

 private:
  std::shared_ptr<PacketHub> hub_;
  std::shared_ptr<PacketGroup> group_;
  uint64_t number_;
  double idle_ = 0;
  bool finished_ = false;
};

class PacketCommunicator final : public Communicator {
 public:
  PacketCommunicator(std::shared_ptr<PacketHub> hub, std::shared_ptr<PacketGroup> group)
      : Communicator(hub->rank(), hub->size()), hub_(std::move(hub)), group_(std::move(group)) {}
  ~PacketCommunicator() override { group_->leave(); }
  PacketCommunicator(const PacketCommunicator&) = delete;
  PacketCommunicator& operator=(const PacketCommunicator&) = delete;

  RankFailure abort(const std::string& reason) override { return group_->abort(reason); }
  RankFailure pass_on(const RankFailure& failure) override { return group_->pass_on(failure); }
  bool failed() const override { return group_->failed(); }

 private:
  std::unique_ptr<CommOperation> begin(const ExchangeRequest& request) override {
    return operation([&](CallPort& port, uint64_t number) { return make_exchange_call(port, number, request); });
  }
  std::unique_ptr<CommOperation> begin(const Reduction& sum) override {
    return operation([&](CallPort& port, uint64_t number) {
      return make_sum_call(port, number, sum.name, {sum.type, sum.count}, sum.data);
    });
  }
  std::unique_ptr<CommOperation> begin(std::vector<std::string>& texts) override {
    return operation([&](CallPort& port, uint64_t number) { return make_gather_call(port, number, texts); });
  }
  template <class Make>
  std::unique_ptr<CommOperation> operation(const Make& make) {
    return std::make_unique<PacketOperation>(hub_, group_, group_->start(make));
  }

  std::shared_ptr<PacketHub> hub_;
  std::shared_ptr<PacketGroup> group_;
};

}  // namespace

PacketHub::PacketHub(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)), helper_([this] { run_helper(); }) {}

PacketHub::~PacketHub() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  helper_.join();
}

std::unique_ptr<Communicator> PacketHub::connect(double timeout) {
  const Lock held(mutex_);
  const uint32_t id = next_group_++;
  group(id).set_timeout(timeout);
  return std::make_unique<PacketCommunicator>(shared_from_this(), groups_.at(id));
}

PacketGroup& PacketHub::group(uint32_t id) {
  auto& found = groups_[id];
  if (found == nullptr) found = std::make_shared<PacketGroup>(*this, id);
  return *found;
}

void PacketHub::send(int to, Packet packet) {
  if (broken_) return;
  try {
    transport_->send(to, std::move(packet));
  } catch (const TransportError& error) {
    break_down(error.peer(), error.what());
  }
}

bool PacketHub::poll() {
  bool any = false;
  try {
    if (!broken_) {
      any = transport_->poll([&](int from, Packet packet) {
        const PacketView view = view_of(from, packet);
        if (is_addressed(view.head)) return take_routed(std::move(packet));
        group(view.head.group).receive(from, view, packet);
      });
    }
  } catch (const TransportError& error) {
    break_down(error.peer(), error.what());
  } catch (const std::exception& error) {  // thrown, for example, if memory runs out
    break_down(rank(), error.what());
  }
  for (const auto& [id, each] : groups_) any = each->work() || any;
  return any;
}

void PacketHub::route(TakePacket take) {
  const Lock held(mutex_);
  route_ = std::move(take);
  if (!route_) return;
  for (Packet& packet : unrouted_) route_(std::move(packet));
  unrouted_.clear();
}

void PacketHub::take_routed(Packet packet) {
  if (route_) return route_(std::move(packet));
  unrouted_.push_back(std::move(packet));
}

void PacketHub::waits_elsewhere(int rank) {
  const Lock held(mutex_);
  elsewhere_ = rank;
}

int PacketHub::waits_for() const {
  for (const auto& [id, each] : groups_) {
    if (each->waiting_for() >= 0) return each->waiting_for();
  }
  return elsewhere_;
}

bool PacketHub::is_excused() {
  const Lock held(mutex_);
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const auto& each) { return each.second->waiting_for() >= 0 || each.second->has_failed(); });
}

void PacketHub::break_down(int failed, const std::string& reason) {
  broken_ = true;
  for (const auto& [id, each] : groups_) each->report({failed < 0 ? rank() : failed, rank(), true, reason});
}

void PacketHub::rest(Lock& lock, int idle) {
  lock.unlock();
  if (idle < kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(Microseconds(doubled(10, (idle - kYields) / 4, kLongestSleep)));
  }
  lock.lock();
}

bool PacketHub::gone(int rank) {
  const double now = now_seconds();
  if (now < looked_ + kLookSeconds) return false;
  looked_ = now;
  return transport_->gone(rank);
}

void PacketHub::run_helper() {
  Lock lock(mutex_);
  for (int idle = 0; !stopping_; ++idle) {
    if (waiters_ == 0 && poll()) idle = 0;
    stopped_.wait_for(lock, Microseconds(doubled(50, idle / 4, kLongestPause)));
  }
}

void PacketHub::close(double exits_within) {
  const double until = now_seconds() + kFlushSeconds;
  Lock lock(mutex_);
  const auto unsent_to = [&](int to) { return transport_->unsent(to) > 0; };
  const auto flushed = [&] {
    for (int r = 0; r < size(); ++r) {
      if (unsent_to(r)) return false;
    }
    return true;
  };
  for (int idle = 0; !flushed() && now_seconds() < until; ++idle) {
    poll();
    rest(lock, idle);
  }
  broken_ = true;  // nothing is sent any more
  transport_->close(exits_within);
}

}  // namespace nacre

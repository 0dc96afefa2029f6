#include "nacre/cluster/two_levels.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/cluster/in_process.h"
#include "nacre/cluster/packet_hub.h"

namespace nacre {
namespace {

// Holds the communicators of both levels: `near` connects the ranks of this process, and `far`
// connects all ranks by packets. All calls of a rank share one object.
struct Levels {
  std::unique_ptr<Communicator> near, far;

  // Returns the failure on which all ranks agree by packets, after telling it to the ranks that
  // wait in this process.
  RankFailure pass_on(const RankFailure& failure) const {
    RankFailure agreed = far->pass_on(failure);
    if (!near->failed()) near->abort(agreed.what());
    return agreed;
  }

  // Runs a function that calls both levels, and returns its result. If one level has failed, makes
  // the other one fail, too, and throws the failure on which all ranks agree.
  template <class Call>
  auto guarded(const Call& call) {
    try {
      return call();
    } catch (const RankFailure& failure) {
      throw RankFailure(pass_on(failure));
    }
  }
};

class TwoLevelExchange final : public CommOperation {
 public:
  TwoLevelExchange(std::shared_ptr<Levels> levels, const ExchangeRequest& near, const ExchangeRequest& far)
      : levels_(std::move(levels)) {
    levels_->guarded([&] {
      near_ = std::make_unique<PendingCall>(levels_->near->start_exchange(near));
      far_ = std::make_unique<PendingCall>(levels_->far->start_exchange(far));
    });
  }
  void finish() override {
    levels_->guarded([&] {
      near_->wait();
      far_->wait();
    });
  }
  double idle_seconds() const override { return near_->counters().idle + far_->counters().idle; }

 private:
  std::shared_ptr<Levels> levels_;
  std::unique_ptr<PendingCall> near_, far_;
};

// FarOperation is a call that only the far level makes.
class FarOperation final : public CommOperation {
 public:
  FarOperation(std::shared_ptr<Levels> levels, PendingCall call) : levels_(std::move(levels)), call_(std::move(call)) {}
  void finish() override {
    levels_->guarded([&] { call_.wait(); });
  }
  double idle_seconds() const override { return call_.counters().idle; }

 private:
  std::shared_ptr<Levels> levels_;
  PendingCall call_;
};

class FarGather final : public CommOperation {
 public:
  FarGather(std::shared_ptr<Levels> levels, std::vector<std::string>& texts)
      : levels_(std::move(levels)), texts_(texts), own_(texts[levels_->far->rank()]) {}
  void finish() override {
    levels_->guarded([&] { texts_ = levels_->far->all_gather(own_); });
  }

 private:
  std::shared_ptr<Levels> levels_;
  std::vector<std::string>& texts_;
  std::string own_;
};

class TwoLevels final : public Communicator {
 public:
  TwoLevels(std::unique_ptr<Communicator> near, std::unique_ptr<Communicator> far, std::vector<char> is_near)
      : Communicator(far->rank(), far->size()),
        levels_(std::make_shared<Levels>(Levels{std::move(near), std::move(far)})),
        is_near_(std::move(is_near)) {
    NACRE_CHECK(levels_->near->rank() == rank(), "a rank must have the same number in its process as among all ranks");
  }

  RankFailure abort(const std::string& reason) override {
    levels_->near->abort(reason);
    return levels_->far->abort(reason);
  }
  RankFailure pass_on(const RankFailure& failure) override { return levels_->pass_on(failure); }
  bool failed() const override { return levels_->near->failed() || levels_->far->failed(); }
  void measure(bool on) override {
    levels_->near->measure(on);
    levels_->far->measure(on);
  }
  DeviceSeconds take_seconds() override {
    DeviceSeconds sum = levels_->near->take_seconds();
    const DeviceSeconds far = levels_->far->take_seconds();
    sum.waited += far.waited;
    sum.moved += far.moved;
    sum.reduced += far.reduced;
    return sum;
  }

 private:
  std::unique_ptr<CommOperation> begin(const ExchangeRequest& request) override {
    const bool adds = request.adds || std::any_of(request.receives.begin(), request.receives.end(),
                                                  [](const ReceiveRows& receive) { return receive.add.has_value(); });
    ExchangeRequest near, far;
    near.name = far.name = request.name;
    far.adds = adds;
    for (const SendRows& send : request.sends) (!adds && is_near_[send.peer] != 0 ? near : far).sends.push_back(send);
    for (const ReceiveRows& receive : request.receives)
      (!adds && is_near_[receive.peer] != 0 ? near : far).receives.push_back(receive);
    return std::make_unique<TwoLevelExchange>(levels_, near, far);
  }
  std::unique_ptr<CommOperation> begin(const Reduction& sum) override {
    return levels_->guarded([&] {
      return std::make_unique<FarOperation>(levels_,
                                            levels_->far->start_all_reduce(sum.type, sum.data, sum.count, sum.name));
    });
  }
  std::unique_ptr<CommOperation> begin(std::vector<std::string>& texts) override {
    return std::make_unique<FarGather>(levels_, texts);
  }

  std::shared_ptr<Levels> levels_;
  std::vector<char> is_near_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> connect_two_levels(const ProcessRanks& ranks,
                                                              const std::shared_ptr<RankMemory>& memory,
                                                              const StageRank& stage, double timeout) {
  const auto hub_of = [own = ranks.own, hubs = ranks.hubs](int rank) -> PacketHub& {
    return *hubs[std::lower_bound(own.begin(), own.end(), rank) - own.begin()];
  };
  GroupOptions group;
  group.timeout = timeout;
  group.memory = memory;
  group.members = ranks.own;
  // A rank that waits in its process says so to ranks of other processes that search for the last
  // one of a chain. A rank that waits for other processes, or knows of a failure, is not the last
  // one of a chain.
  group.waits = [hub_of](int rank, int peer) { hub_of(rank).waits_elsewhere(peer); };
  group.is_excused = [hub_of](int rank) { return hub_of(rank).is_excused(); };
  auto near = make_group(static_cast<int>(ranks.process_of.size()), group);
  std::vector<char> is_near;
  for (const int process : ranks.process_of) is_near.push_back(process == ranks.process_of[ranks.own[0]] ? 1 : 0);
  std::vector<std::unique_ptr<Communicator>> all;
  for (size_t i = 0; i < ranks.own.size(); ++i) {
    all.push_back(
        std::make_unique<TwoLevels>(std::move(near[i]), stage(ranks.own[i], ranks.hubs[i]->connect(timeout)), is_near));
  }
  return all;
}

}  // namespace nacre

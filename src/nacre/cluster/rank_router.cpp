#include "nacre/cluster/rank_router.h"

#include <algorithm>
#include <utility>

#include "nacre/cluster/packet.h"

namespace nacre {

class RankRouter::RankTransport final : public Transport {
 public:
  RankTransport(std::shared_ptr<RankRouter> router, int rank) : router_(std::move(router)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(router_->process_of_.size()); }
  int local_size() const override {
    const auto& all = router_->process_of_;
    return static_cast<int>(std::count(all.begin(), all.end(), all[rank_]));
  }
  int local_rank() const override {
    const auto& all = router_->process_of_;
    return static_cast<int>(std::count(all.begin(), all.begin() + rank_, all[rank_]));
  }

  void send(int to, Packet packet) override { router_->send(rank_, to, std::move(packet)); }

  int unsent(int to) const override {
    if (router_->is_own(to)) {
      const std::lock_guard lock(router_->mutex_);
      return static_cast<int>(router_->letters_[to].size());
    }
    const auto lock = router_->processes_->lock();
    return router_->processes_->unsent(router_->process_of_[to]);
  }

  bool poll(FunctionRef<void(int, Packet)> receive) override {
    bool any = false;
    {
      const auto lock = router_->processes_->lock();
      any = router_->processes_->poll();
      if (router_->processes_->broken()) throw TransportError(-1, "the connection between the processes is broken");
    }
    std::deque<Letter> letters;
    {
      const std::lock_guard lock(router_->mutex_);
      letters.swap(router_->letters_[rank_]);
    }
    for (Letter& letter : letters) receive(letter.from, std::move(letter.packet));
    return any || !letters.empty();
  }

  bool gone(int rank) override {
    if (router_->is_own(rank)) return false;
    const auto lock = router_->processes_->lock();
    return router_->processes_->gone(router_->process_of_[rank]);
  }

  void close(double) override {}  // does nothing, because the processes stay connected
  [[noreturn]] void end_all(int code) override { router_->processes_->transport().end_all(code); }

 private:
  std::shared_ptr<RankRouter> router_;
  int rank_;
};

RankRouter::RankRouter(std::shared_ptr<PacketHub> processes, std::vector<int> process_of)
    : processes_(std::move(processes)), process_of_(std::move(process_of)) {
  processes_->route([this](Packet packet) { deliver(std::move(packet)); });
}

RankRouter::~RankRouter() { processes_->route(nullptr); }

std::unique_ptr<Transport> RankRouter::connect(int rank) {
  return std::make_unique<RankTransport>(shared_from_this(), rank);
}

void RankRouter::send(int from, int to, Packet packet) {
  if (is_own(to)) {
    const std::lock_guard lock(mutex_);
    letters_[to].push_back({from, std::move(packet)});
    return;
  }
  address_packet(packet, {from, to});
  const auto lock = processes_->lock();
  processes_->send(process_of_[to], std::move(packet));
}

void RankRouter::deliver(Packet packet) {
  const PacketAddress address = take_address(packet);
  const std::lock_guard lock(mutex_);
  letters_[address.to].push_back({address.from, std::move(packet)});
}

}  // namespace nacre

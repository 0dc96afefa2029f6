// A transport that connects threads, as MPI connects processes.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "nacre/cluster/transport.h"

namespace nacre {

// Holds the packets on their way between the ranks of a test.
struct Mailboxes {
  struct Letter {
    int from;
    Packet packet;
  };
  explicit Mailboxes(int size) : boxes(size), dead(size) {}

  std::mutex mutex;
  std::vector<std::deque<Letter>> boxes;  // packets by the rank that receives them
  std::vector<bool> dead;                 // ranks whose process has ended
};

class Mail final : public Transport {
 public:
  Mail(int rank, std::shared_ptr<Mailboxes> all) : rank_(rank), all_(std::move(all)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(all_->boxes.size()); }
  int local_size() const override { return size(); }
  int local_rank() const override { return rank_; }
  void send(int to, Packet packet) override {
    const std::lock_guard lock(all_->mutex);
    all_->boxes[to].push_back({rank_, std::move(packet)});
  }
  int unsent(int to) const override {
    const std::lock_guard lock(all_->mutex);
    return static_cast<int>(all_->boxes[to].size());
  }
  bool poll(FunctionRef<void(int, Packet)> receive) override {
    std::deque<Mailboxes::Letter> letters;
    {
      const std::lock_guard lock(all_->mutex);
      if (all_->dead[rank_]) return false;
      letters.swap(all_->boxes[rank_]);
    }
    for (Mailboxes::Letter& letter : letters) receive(letter.from, std::move(letter.packet));
    return !letters.empty();
  }
  bool gone(int rank) override {
    const std::lock_guard lock(all_->mutex);
    return all_->dead[rank];
  }
  void close(double) override {}
  [[noreturn]] void end_all(int) override { std::terminate(); }

 private:
  int rank_;
  std::shared_ptr<Mailboxes> all_;
};

}  // namespace nacre

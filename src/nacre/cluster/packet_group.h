// PacketGroup: one communicator as this process sees it, with the calls of its rank and what is
// known of the other ranks. All groups of a process share a hub (packet_hub.h), whose mutex guards
// them.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/cluster/agreement.h"
#include "nacre/cluster/culprit_search.h"
#include "nacre/cluster/packet_calls.h"

namespace nacre {

class PacketHub;

class PacketGroup final : public CallPort {
 public:
  using Lock = std::unique_lock<std::mutex>;

  PacketGroup(PacketHub& hub, uint32_t id);

  // ---- The thread of the rank calls the functions of this section, which lock the hub.

  // Starts the next call of this rank, and returns its number. `make` is given the number and makes
  // the call.
  uint64_t start(FunctionRef<std::unique_ptr<PacketCall>(CallPort&, uint64_t)> make);
  // Waits for a call. Returns the seconds in which the rank waited for others and no packet came.
  double finish(uint64_t number);
  // Gives up a call, because the rank has failed. Nobody touches the memory of the call afterwards.
  void give_up(uint64_t number);
  void leave();
  RankFailure abort(const std::string& reason);
  // Tells all ranks of a failure that they know from another group. Returns the failure on which
  // the ranks agree.
  RankFailure pass_on(const RankFailure& failure);
  bool failed();

  // ---- The hub calls the functions of this section while it is locked.

  void set_timeout(double timeout) { timeout_ = timeout; }
  // Takes a packet of this group. Other ranks may send packets before this rank has made its own
  // communicator.
  void receive(int from, const PacketView& packet, Packet& storage);
  // Sends the packets for which there is room. After a failure, chooses among the reports instead,
  // when it is this rank's turn. Returns whether any packet of a call was sent.
  bool work();
  void report(const FailureReport& report);
  // Returns the rank that this one waits for in this group; -1 if it does not wait.
  int waiting_for() const { return waiting_for_; }
  bool has_failed() const { return agreement_.failed(); }

  // ---- Calls use the functions of this section.

  uint32_t id() const override { return id_; }
  int rank() const override;
  int size() const override;
  void send(int to, Packet packet) override;
  bool has_room(int to) const override;
  void disagree(int rank, const std::string& reason) override;

 private:
  struct EarlyStart {
    int from;
    Packet packet;
  };

  void receive_start(int from, const PacketView& packet, Packet& storage);
  // Tells rank `to`, which has asked, which rank this rank waits for.
  void answer(int to, PacketHead head);
  void tell_all(PacketHead head, const std::string& text);
  // Looks at `blocker`, the rank that this one waits for. Reports a failure if that rank has left
  // or its process has ended. If this rank has waited longer than the timeout, searches for the
  // last rank of the chain of waiting ranks.
  void check_blocker(const PacketCall& call, int blocker, Patience& patience);
  void search_culprit(const PacketCall& call, int blocker);
  // Waits until all ranks agree on one failure, and returns it.
  RankFailure await_choice(Lock& lock);

  PacketHub& hub_;
  uint32_t id_;
  double timeout_ = kCommTimeout;
  uint64_t next_ = 0;  // the number of this rank's next call
  std::map<uint64_t, std::unique_ptr<PacketCall>> calls_;
  // These are packets by which other ranks have started calls that this rank has not started yet.
  std::map<uint64_t, std::vector<EarlyStart>> early_;
  std::vector<uint64_t> left_at_;  // for each rank the first call that it takes no part in
  int waiting_for_ = -1;           // the rank that this one waits for; -1: it does not wait
  CulpritSearch search_;
  FailureAgreement agreement_;
};

}  // namespace nacre

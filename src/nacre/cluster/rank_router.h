// RankRouter: lets several ranks of one process send packets to the ranks of all processes. Each
// rank has a transport and a hub (packet_hub.h) of its own, so failures and searches for a rank
// that hangs work as if each rank were a process. Packets between ranks of one process stay in its
// memory; the others travel by the hub that connects the processes.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "nacre/cluster/packet_hub.h"
#include "nacre/cluster/transport.h"

namespace nacre {

class RankRouter : public std::enable_shared_from_this<RankRouter> {
 public:
  // `process_of` has the process of each rank. All processes make their routers from the same list.
  RankRouter(std::shared_ptr<PacketHub> processes, std::vector<int> process_of);
  ~RankRouter();
  RankRouter(const RankRouter&) = delete;
  RankRouter& operator=(const RankRouter&) = delete;

  // Returns the transport of a rank of this process.
  std::unique_ptr<Transport> connect(int rank);

 private:
  class RankTransport;

  struct Letter {
    int from;
    Packet packet;
  };

  bool is_own(int rank) const { return process_of_[rank] == processes_->rank(); }
  void send(int from, int to, Packet packet);
  // Takes a packet that another process has sent to a rank of this one.
  void deliver(Packet packet);

  std::shared_ptr<PacketHub> processes_;
  std::vector<int> process_of_;
  std::mutex mutex_;                           // guards letters_
  std::map<int, std::deque<Letter>> letters_;  // packets by receiver, until it polls
};

}  // namespace nacre

// PacketHub: sends and receives the packets of a rank whose peers are in other processes, by a
// transport, for example MPI (mpi.h), and makes communicators. A rank that waits moves packets
// itself. While it computes, a thread of the hub does so. This thread also answers other ranks, so
// a rank that computes is not taken for dead.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/cluster/transport.h"

namespace nacre {

class PacketGroup;

class PacketHub : public std::enable_shared_from_this<PacketHub> {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit PacketHub(std::unique_ptr<Transport> transport);
  ~PacketHub();
  PacketHub(const PacketHub&) = delete;
  PacketHub& operator=(const PacketHub&) = delete;

  // Returns a new communicator. All ranks call this function equally often; it does not wait for
  // them. `timeout` is in seconds. If it is 0 or less, ranks wait for ever.
  std::unique_ptr<Communicator> connect(double timeout);
  // Waits until the packets of this rank have been sent, at most two seconds, and ends the
  // transport (Transport::close()). There must be no failure.
  void close(double exits_within);

  Transport& transport() { return *transport_; }
  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }

  // Passes packets that are addressed to ranks of this process (rank_router.h) to `take`, including
  // those that arrived before this call. The hub is locked while it calls `take`. If `take` is
  // null, no more packets are passed on.
  using TakePacket = std::function<void(Packet)>;
  void route(TakePacket take);

  // ---- Groups use the functions of this section. The caller must hold the lock, except for lock()
  // and for functions that say that they lock.

  Lock lock() { return Lock(mutex_); }
  void send(int to, Packet packet);
  int unsent(int to) const { return transport_->unsent(to); }
  // Sends and receives packets. Returns whether there were any.
  bool poll();
  // Lets other threads and processes run: unlocks the hub, yields or sleeps, and locks it again.
  // `idle` counts the rounds in which no packet has moved; the larger it is, the longer the sleep.
  void rest(Lock& lock, int idle);
  // Sets which rank this rank waits for outside the hub, or -1 if it waits for none. Locks the hub.
  void waits_elsewhere(int rank);
  // Returns the rank that this rank waits for, in a group of this hub or outside the hub
  // (waits_elsewhere()); -1 if this rank waits for nobody.
  int waits_for() const;
  // Returns whether this rank waits for others in a group, or knows of a failure. Locks the hub.
  bool is_excused();
  // Returns whether packets can no longer be moved.
  bool broken() const { return broken_; }
  // Returns whether the process of a rank is known to have ended. Asks the transport twice a second
  // at most, and returns false in between.
  bool gone(int rank);

 private:
  friend class Waiter;

  PacketGroup& group(uint32_t id);
  void take_routed(Packet packet);
  void run_helper();
  // Makes all groups fail, because packets can no longer be moved. `failed` is the rank that is to
  // blame, or -1 if that is unknown.
  void break_down(int failed, const std::string& reason);

  std::unique_ptr<Transport> transport_;
  std::mutex mutex_;  // guards the transport, the groups and the members below
  std::condition_variable stopped_;
  std::map<uint32_t, std::shared_ptr<PacketGroup>> groups_;
  uint32_t next_group_ = 0;
  int waiters_ = 0;  // threads that move packets while they wait
  bool stopping_ = false, broken_ = false;
  double looked_ = 0;   // time at which gone() last asked the transport
  int elsewhere_ = -1;  // the rank that this one waits for outside the hub
  TakePacket route_;
  std::vector<Packet> unrouted_;  // packets for ranks that have arrived before route()
  std::thread helper_;
};

// As long as a Waiter lives, its thread moves packets, and the helper does not. The thread holds
// the lock when it makes and destroys the Waiter.
class Waiter {
 public:
  explicit Waiter(PacketHub& hub) : hub_(hub) { ++hub_.waiters_; }
  ~Waiter() { --hub_.waiters_; }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 private:
  PacketHub& hub_;
};

}  // namespace nacre

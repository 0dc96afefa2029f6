// PacketCall: one call of a rank whose peers are in other processes. A rank tells its peers that it
// has started the call and how large the messages are that it sends and expects. Bytes are sent to
// a peer only after that peer has started the call too, so they are never stored on the way: they
// are packed from the sender's memory into packets and unpacked into the receiver's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/cluster/packet.h"

namespace nacre {

// CallPort is what a call uses of its group (PacketGroup).
class CallPort {
 public:
  virtual ~CallPort() = default;
  virtual uint32_t id() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void send(int to, Packet packet) = 0;
  // Returns whether a packet may be sent to a rank now. It may not if too many earlier packets are
  // still on their way to that rank; then the sender waits.
  virtual bool has_room(int to) const = 0;
  // Reports that `rank` does not make the same call as its peers, so that all ranks fail.
  virtual void disagree(int rank, const std::string& reason) = 0;
};

class PacketCall {
 public:
  PacketCall(CallPort& port, CallKind kind, uint64_t number, const char* name);
  virtual ~PacketCall() = default;
  PacketCall(const PacketCall&) = delete;
  PacketCall& operator=(const PacketCall&) = delete;

  CallKind kind() const { return kind_; }
  uint64_t number() const { return number_; }
  const char* name() const { return name_; }
  // Returns how many packets of the call have come in. A rank that waits for the call sees by a
  // growing number that the call makes progress.
  int64_t received() const { return received_; }

  // Tells the peers that this rank has started the call.
  virtual void begin() = 0;
  // Takes note that `peer` has started the call, as `packet` says, if `peer` makes the same call as
  // this rank. Reports a failure if it does not.
  void peer_started(int peer, const PacketView& packet);
  // Takes a packet with content or with sums that has arrived from `peer`.
  void receive(int peer, const PacketView& packet);
  // Sends as many packets as there is room for. Returns whether anything was sent.
  bool pump();
  // Returns a rank that this rank waits for, or -1 if the call is complete.
  int blocker() const;
  // Does the work that needs no other rank. The group calls finish() once, when the call is
  // complete.
  virtual void finish() {}

 protected:
  // Describes a message on its way to a peer.
  struct OutMessage {
    int peer;
    PacketKind kind;
    ConstRows rows;
    int64_t sent = 0;
  };
  // Describes a message that comes from a peer.
  struct InMessage {
    int peer;
    PacketKind kind;
    Rows rows;
    int64_t received = 0;
  };

  PacketHead head(PacketKind kind) const;
  // Returns whether what a peer says of the call agrees with what this rank knows. Reports a
  // failure if it does not.
  virtual bool agrees(int peer, const PacketView& packet) = 0;
  // PacketCall calls this function when all bytes of a message from a peer have arrived.
  virtual void arrived(const InMessage&) {}

  CallPort& port_;
  std::vector<int> peers_;  // the ranks whose start this rank waits for
  std::vector<bool> started_;
  std::vector<OutMessage> out_;
  std::vector<InMessage> in_;

 private:
  CallKind kind_;
  uint64_t number_;
  const char* name_;
  int64_t received_ = 0;
};

}  // namespace nacre

// Transport: how packets of bytes get from one process to another. It knows nothing of calls. The
// communicator of ranks in several processes (packet_hub.h) is built on it. One thread at a time
// uses a transport.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "nacre/base/function_ref.h"

namespace nacre {

struct Packet {
  std::unique_ptr<std::byte[]> bytes;
  size_t size = 0;
};

// A TransportError is thrown when packets can no longer be sent or received.
class TransportError : public std::runtime_error {
 public:
  // `peer` is the rank that cannot be reached, or -1 if that is unknown.
  TransportError(int peer, const std::string& what) : std::runtime_error(what), peer_(peer) {}
  int peer() const { return peer_; }

 private:
  int peer_;
};

// Transport is the connection of a process to the others. All functions except close() return at
// once. send() and poll() may throw TransportError.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // local_size() returns the number of ranks on the machine of this rank, and local_rank() returns
  // how many of them come before this rank.
  virtual int local_size() const = 0;
  virtual int local_rank() const = 0;

  // Sends a packet to another rank. Packets from one rank to another arrive in order.
  virtual void send(int to, Packet packet) = 0;
  // Returns how many packets for rank `to` have not been taken over by the network yet.
  virtual int unsent(int to) const = 0;
  // Calls receive(rank, packet) for packets that have arrived. `receive` may call send(). Returns
  // whether anything was sent or received.
  virtual bool poll(FunctionRef<void(int, Packet)> receive) = 0;
  // Returns whether the process of a rank is known to have ended.
  virtual bool gone(int rank) = 0;

  // Ends the connection. All ranks call it, and nothing is sent afterwards. If `exits_within` is
  // not 0, this process promises to end within so many seconds after the call. If the process is
  // stopped and so does not end in time, the system kills it, since nobody else would.
  virtual void close(double exits_within) = 0;
  // Ends this process at once, in a way that makes the launcher end the others.
  [[noreturn]] virtual void end_all(int code) = 0;
};

}  // namespace nacre

// Packets: ranks in several processes send them to each other. A packet has a head and a body,
// which is any number of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "nacre/cluster/call_kind.h"
#include "nacre/cluster/disagreement.h"
#include "nacre/cluster/failure.h"
#include "nacre/cluster/transport.h"

namespace nacre {

enum class PacketKind : uint8_t {
  start,     // the sender has started a call; the body of a gather is its text
  content,   // rows of an exchange, or the sender's elements of the receiver's slice of a sum
  sum,       // the sums of the sender's slice
  report,    // what the sender knows of a failure; the body is the reason
  choice,    // the report that all ranks throw
  leave,     // the sender takes part in no call from `number` on
  question,  // asks which rank the receiver waits for
  answer,
};

struct PacketHead {
  uint32_t group = 0;  // the communicator that the packet belongs to
  PacketKind kind = PacketKind::start;
  CallKind call = CallKind::exchange;
  bool vague = false;   // true if the report knows no reason
  uint64_t number = 0;  // number of a call or a question
  int64_t offset = 0;   // for content or sums: where the body begins in the message
  // At the start of an exchange, these are the sizes of the message that the sender sends to the
  // receiver and of the one that it expects from it.
  MessageSize sends, expects;
  SumSize sum;  // at the start of a sum: its size
  // In a report or a choice, this is the rank that failed. In an answer, it is the rank that the
  // sender waits for, or -1.
  int32_t rank = -1;
  int32_t teller = -1;         // rank that prints the failure of a report
  int32_t from = -1, to = -1;  // sender and receiver, if processes drive several ranks
};

// Holds the head and the body of a packet that has arrived.
struct PacketView {
  PacketHead head;
  std::span<const std::byte> body;

  std::string_view text() const { return {reinterpret_cast<const char*>(body.data()), body.size()}; }
};

// Returns a packet whose body the caller fills in (body_of()).
Packet make_packet(const PacketHead& head, size_t body_bytes);
Packet make_packet(const PacketHead& head, std::string_view text);
std::byte* body_of(const Packet& packet);
// Returns the head and the body of a packet that rank `from` has sent. Throws TransportError if the
// packet is too short.
PacketView view_of(int from, const Packet& packet);

// Names the ranks that send and receive a packet, if processes drive several ranks (rank_router.h).
struct PacketAddress {
  int from = -1;
  int to = -1;
};
void address_packet(const Packet& packet, const PacketAddress& address);
bool is_addressed(const PacketHead& head);
// Removes the address from a packet and returns it.
PacketAddress take_address(const Packet& packet);

PacketHead head_of(const FailureReport& report, PacketKind kind);
FailureReport report_of(const PacketView& packet);

}  // namespace nacre

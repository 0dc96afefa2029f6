#include "nacre/cluster/packet_call.h"

#include <algorithm>

namespace nacre {
namespace {

constexpr int64_t kPacketBytes = 256 << 10;

}  // namespace

PacketCall::PacketCall(CallPort& port, CallKind kind, uint64_t number, const char* name)
    : port_(port), started_(port.size()), kind_(kind), number_(number), name_(name) {}

PacketHead PacketCall::head(PacketKind kind) const {
  PacketHead head;
  head.group = port_.id();
  head.kind = kind;
  head.call = kind_;
  head.number = number_;
  return head;
}

void PacketCall::peer_started(int peer, const PacketView& packet) {
  ++received_;
  if (packet.head.call != kind_) {
    // Both ranks notice that their calls differ, and both blame the higher of the two ranks.
    const bool own = port_.rank() > peer;
    port_.disagree(std::max(peer, port_.rank()),
                   other_kind(own ? kind_ : packet.head.call, own ? packet.head.call : kind_));
  } else if (agrees(peer, packet)) {
    started_[peer] = true;
  }
}

void PacketCall::receive(int peer, const PacketView& packet) {
  const auto at = std::find_if(in_.begin(), in_.end(), [&](const InMessage& message) {
    return message.peer == peer && message.kind == packet.head.kind;
  });
  const auto bytes = static_cast<int64_t>(packet.body.size());
  if (at == in_.end() || packet.head.offset != at->received || bytes > at->rows.bytes() - at->received) {
    throw TransportError(peer, "it sent a packet that does not belong to any call");
  }
  ++received_;
  unpack_bytes(packet.body.data(), at->rows, at->received, at->received + bytes);
  at->received += bytes;
  if (at->received == at->rows.bytes()) arrived(*at);
}

bool PacketCall::pump() {
  bool any = false;
  for (OutMessage& message : out_) {
    while (started_[message.peer] && message.sent < message.rows.bytes() && port_.has_room(message.peer)) {
      const int64_t bytes = std::min(kPacketBytes, message.rows.bytes() - message.sent);
      PacketHead own = head(message.kind);
      own.offset = message.sent;
      Packet packet = make_packet(own, static_cast<size_t>(bytes));
      pack_bytes(message.rows, message.sent, message.sent + bytes, body_of(packet));
      port_.send(message.peer, std::move(packet));
      message.sent += bytes;
      any = true;
    }
  }
  return any;
}

int PacketCall::blocker() const {
  for (const int peer : peers_) {
    if (!started_[peer]) return peer;
  }
  for (const InMessage& message : in_) {
    if (message.received < message.rows.bytes()) return message.peer;
  }
  for (const OutMessage& message : out_) {
    if (message.sent < message.rows.bytes()) return message.peer;
  }
  return -1;
}

}  // namespace nacre

#include "nacre/cluster/packet.h"

#include <cstring>
#include <type_traits>

namespace nacre {

static_assert(std::is_trivially_copyable_v<PacketHead>);

Packet make_packet(const PacketHead& head, size_t body_bytes) {
  Packet packet{std::make_unique_for_overwrite<std::byte[]>(sizeof head + body_bytes), sizeof head + body_bytes};
  std::memcpy(packet.bytes.get(), &head, sizeof head);
  return packet;
}

Packet make_packet(const PacketHead& head, std::string_view text) {
  Packet packet = make_packet(head, text.size());
  if (!text.empty()) std::memcpy(body_of(packet), text.data(), text.size());
  return packet;
}

std::byte* body_of(const Packet& packet) { return packet.bytes.get() + sizeof(PacketHead); }

PacketView view_of(int from, const Packet& packet) {
  PacketView view;
  if (packet.size < sizeof view.head) throw TransportError(from, "it sent a packet without a head");
  std::memcpy(&view.head, packet.bytes.get(), sizeof view.head);
  view.body = {body_of(packet), packet.size - sizeof view.head};
  return view;
}

void address_packet(const Packet& packet, const PacketAddress& address) {
  PacketHead head;
  std::memcpy(&head, packet.bytes.get(), sizeof head);
  head.from = address.from;
  head.to = address.to;
  std::memcpy(packet.bytes.get(), &head, sizeof head);
}

bool is_addressed(const PacketHead& head) { return head.to >= 0; }

PacketAddress take_address(const Packet& packet) {
  PacketHead head;
  std::memcpy(&head, packet.bytes.get(), sizeof head);
  address_packet(packet, {});
  return {head.from, head.to};
}

PacketHead head_of(const FailureReport& report, PacketKind kind) {
  PacketHead head;
  head.kind = kind;
  head.vague = report.vague;
  head.rank = report.rank;
  head.teller = report.teller;
  return head;
}

FailureReport report_of(const PacketView& packet) {
  return {packet.head.rank, packet.head.teller, packet.head.vague, std::string(packet.text())};
}

}  // namespace nacre

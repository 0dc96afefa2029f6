#include "nacre/cluster/packet_calls.h"

#include <algorithm>
#include <vector>

namespace nacre {
namespace {

ConstRows readable(const Rows& rows) { return {rows.data, rows.count, rows.row_bytes, rows.pitch, rows.index}; }

class ExchangeCall final : public PacketCall {
 public:
  ExchangeCall(CallPort& port, uint64_t number, const ExchangeRequest& request)
      : PacketCall(port, CallKind::exchange, number, request.name), sends_(port.size()), expects_(port.size()) {
    for (const SendRows& send : request.sends) {
      if (send.rows.bytes() == 0) continue;
      sends_[send.peer] = {send.rows.count, send.rows.row_bytes};
      if (send.peer == port.rank()) {
        own_from_ = send.rows;
      } else {
        out_.push_back({send.peer, PacketKind::content, send.rows});
      }
    }
    for (const ReceiveRows& receive : request.receives) {
      if (receive.rows.bytes() == 0) continue;
      expects_[receive.peer] = {receive.rows.count, receive.rows.row_bytes};
      if (receive.peer == port.rank()) {
        own_ = receive;
      } else if (receive.add) {
        const Rows arrived = make_room(receive);
        in_.push_back({receive.peer, PacketKind::content, arrived});
      } else {
        in_.push_back({receive.peer, PacketKind::content, receive.rows});
      }
    }
    std::sort(added_.begin(), added_.end(), [](const Added& a, const Added& b) { return a.to.peer < b.to.peer; });
    for (int peer = 0; peer < port.size(); ++peer) {
      if (peer != port.rank() && sends_[peer].bytes() + expects_[peer].bytes() > 0) peers_.push_back(peer);
    }
  }

  void begin() override {
    const int rank = port_.rank();
    if (sends_[rank] != expects_[rank]) {
      port_.disagree(rank, other_message(sends_[rank], rank, expects_[rank], name()));
    }
    for (const int peer : peers_) {
      PacketHead own = head(PacketKind::start);
      own.sends = sends_[peer];
      own.expects = expects_[peer];
      port_.send(peer, make_packet(own, 0));
    }
  }

  // The thread that waits for the call runs this function. It copies or adds the message of the
  // rank to itself, and adds the rows that were received to be added, in the order of the ranks.
  void finish() override {
    const auto later =
        std::find_if(added_.begin(), added_.end(), [&](const Added& a) { return a.to.peer > port_.rank(); });
    std::for_each(added_.begin(), later, add_arrived);
    if (own_.add) {
      add_rows(*own_.add, own_from_, own_.rows, 0, own_from_.count);
    } else {
      copy_rows(own_from_, own_.rows, 0, own_from_.count);
    }
    std::for_each(later, added_.end(), add_arrived);
  }

 private:
  bool agrees(int peer, const PacketView& packet) override {
    const MessageSize sent = packet.head.sends, expected = packet.head.expects;
    if (sent != expects_[peer]) {
      port_.disagree(peer, other_message(sent, port_.rank(), expects_[peer], name()));
    } else if (expected != sends_[peer]) {
      port_.disagree(port_.rank(), other_message(sends_[peer], peer, expected, name()));
    } else {
      return true;
    }
    return false;
  }

  // Holds rows of a peer, which are added to the receiver's rows when the rows of all peers have
  // arrived.
  struct Added {
    ReceiveRows to;
    std::vector<std::byte> bytes;
  };

  Rows make_room(const ReceiveRows& receive) {
    Added& added = added_.emplace_back();
    added.to = receive;
    added.bytes.resize(static_cast<size_t>(receive.rows.bytes()));
    return {added.bytes.data(), receive.rows.count, receive.rows.row_bytes};
  }

  static void add_arrived(const Added& added) {
    const Rows& to = added.to.rows;
    add_rows(*added.to.add, {added.bytes.data(), to.count, to.row_bytes}, to, 0, to.count);
  }

  std::vector<MessageSize> sends_, expects_;  // sizes of the messages to and from each peer
  ConstRows own_from_;
  ReceiveRows own_;  // the receiving end of the rank's message to itself
  std::vector<Added> added_;
};

// SumCall adds up arrays: every rank gets its slice of the arrays of all other ranks, adds these
// slices to its own, and sends the sums to all other ranks.
class SumCall final : public PacketCall {
 public:
  SumCall(CallPort& port, uint64_t number, const char* name, SumSize size, void* data)
      : PacketCall(port, CallKind::all_reduce, number, name),
        size_(size),
        data_(static_cast<std::byte*>(data)),
        from_peers_(port.size()) {
    const int64_t own = slice(port.rank()).bytes();
    for (int peer = 0; peer < port.size(); ++peer) {
      if (peer == port.rank()) continue;
      peers_.push_back(peer);
      from_peers_[peer].resize(static_cast<size_t>(own));
      add(out_, peer, PacketKind::content, readable(slice(peer)));
      add(in_, peer, PacketKind::content, Rows{from_peers_[peer].data(), 1, own});
    }
    // The messages with sums come last in the list of incoming messages. So this rank first waits
    // for the peers that owe elements of its slice, because without them it cannot send the sums
    // that others wait for.
    for (const int peer : peers_) add(in_, peer, PacketKind::sum, slice(peer));
    missing_ = own > 0 ? static_cast<int>(peers_.size()) : 0;
  }

  void begin() override {
    PacketHead own = head(PacketKind::start);
    own.sum = size_;
    for (const int peer : peers_) port_.send(peer, make_packet(own, 0));
  }

 private:
  template <class Messages, class Range>
  static void add(Messages& messages, int peer, PacketKind kind, const Range& rows) {
    if (rows.bytes() > 0) messages.push_back({peer, kind, rows});
  }

  // Returns the elements of this rank's array whose sums `rank` computes, as one row.
  Rows slice(int rank) const {
    const SumSlice own = slice_of(size_.count, rank, port_.size());
    const int64_t width = bytes_of(size_.type);
    return {data_ + own.begin * width, 1, (own.end - own.begin) * width};
  }

  bool agrees(int peer, const PacketView& packet) override {
    if (packet.head.sum == size_) return true;
    const bool own = port_.rank() > peer;  // both ranks blame the higher one
    port_.disagree(std::max(peer, port_.rank()),
                   other_sum(own ? size_ : packet.head.sum, own ? packet.head.sum : size_, name()));
    return false;
  }

  void arrived(const InMessage& message) override {
    if (message.kind != PacketKind::content || --missing_ > 0) return;
    const Rows own = slice(port_.rank());
    std::vector<void*> slices;
    slices.reserve(from_peers_.size());
    for (int r = 0; r < port_.size(); ++r) slices.push_back(r == port_.rank() ? own.data : from_peers_[r].data());
    sum_in_place(size_.type, slices, 0, own.row_bytes / bytes_of(size_.type));
    from_peers_.clear();
    for (const int peer : peers_) out_.push_back({peer, PacketKind::sum, readable(own)});
  }

  SumSize size_;
  std::byte* data_;
  // These are the elements of this rank's slice that each peer has sent. The list is empty when the
  // elements have been added.
  std::vector<std::vector<std::byte>> from_peers_;
  int missing_;  // number of peers whose elements have not arrived yet
};

class GatherCall final : public PacketCall {
 public:
  GatherCall(CallPort& port, uint64_t number, std::vector<std::string>& texts)
      : PacketCall(port, CallKind::gather, number, "gather"), texts_(texts) {
    for (int peer = 0; peer < port.size(); ++peer) {
      if (peer != port.rank()) peers_.push_back(peer);
    }
  }

  void begin() override {
    for (const int peer : peers_) port_.send(peer, make_packet(head(PacketKind::start), texts_[port_.rank()]));
  }

 private:
  bool agrees(int peer, const PacketView& packet) override {
    texts_[peer] = packet.text();
    return true;
  }

  std::vector<std::string>& texts_;
};

}  // namespace

std::unique_ptr<PacketCall> make_exchange_call(CallPort& port, uint64_t number, const ExchangeRequest& request) {
  return std::make_unique<ExchangeCall>(port, number, request);
}

std::unique_ptr<PacketCall> make_sum_call(CallPort& port, uint64_t number, const char* name, SumSize size, void* data) {
  return std::make_unique<SumCall>(port, number, name, size, data);
}

std::unique_ptr<PacketCall> make_gather_call(CallPort& port, uint64_t number, std::vector<std::string>& texts) {
  return std::make_unique<GatherCall>(port, number, texts);
}

}  // namespace nacre

#include "nacre/cluster/packet_group.h"

#include <fmt/format.h>

#include "nacre/base/log.h"
#include "nacre/cluster/packet_hub.h"

namespace nacre {
namespace {

constexpr int kPacketsInFlight = 4;  // the most packets on their way to one peer
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

}  // namespace

PacketGroup::PacketGroup(PacketHub& hub, uint32_t id)
    : hub_(hub), id_(id), left_at_(hub.size(), kNever), search_(hub.rank(), hub.size()), agreement_(hub.rank()) {}

int PacketGroup::rank() const { return hub_.rank(); }
int PacketGroup::size() const { return hub_.size(); }
void PacketGroup::send(int to, Packet packet) { hub_.send(to, std::move(packet)); }
bool PacketGroup::has_room(int to) const { return hub_.unsent(to) < kPacketsInFlight; }

// ---- The functions below start and end calls.

uint64_t PacketGroup::start(FunctionRef<std::unique_ptr<PacketCall>(CallPort&, uint64_t)> make) {
  Lock lock = hub_.lock();
  if (agreement_.failed()) throw await_choice(lock);
  const uint64_t number = next_++;
  PacketCall& call = *calls_.emplace(number, make(*this, number)).first->second;
  call.begin();
  if (const auto early = early_.find(number); early != early_.end()) {
    for (const EarlyStart& each : early->second) call.peer_started(each.from, view_of(each.from, each.packet));
    early_.erase(early);
  }
  hub_.poll();
  return number;
}

double PacketGroup::finish(uint64_t number) {
  Lock lock = hub_.lock();
  PacketCall& call = *calls_.at(number);
  Patience patience(timeout_);
  const Waiter waiter(hub_);
  int64_t received = call.received();
  double rested = 0;
  for (int idle = 0; !agreement_.failed(); ++idle) {
    if (hub_.poll()) idle = 0;
    waiting_for_ = call.blocker();
    if (waiting_for_ < 0 || agreement_.failed()) break;
    if (call.received() != received) {  // packets of the call have arrived
      received = call.received();
      patience.restart();
      search_.stop();
    }
    check_blocker(call, waiting_for_, patience);
    if (idle == 0) continue;
    const double start = now_seconds();
    hub_.rest(lock, idle);
    rested += now_seconds() - start;
  }
  waiting_for_ = -1;
  search_.stop();
  if (agreement_.failed()) throw await_choice(lock);
  call.finish();
  calls_.erase(number);
  return rested;
}

void PacketGroup::give_up(uint64_t number) {
  const Lock lock = hub_.lock();
  const auto call = calls_.find(number);
  if (!agreement_.failed()) {
    report({rank(), rank(), true, fmt::format("it gave up '{}' before it had ended", call->second->name())});
  }
  calls_.erase(call);
}

void PacketGroup::leave() {
  const Lock lock = hub_.lock();
  PacketHead head;
  head.kind = PacketKind::leave;
  head.number = next_;
  tell_all(head, "");
}

// ---- The functions below handle packets.

void PacketGroup::receive(int from, const PacketView& packet, Packet& storage) {
  const PacketHead& head = packet.head;
  switch (head.kind) {
    case PacketKind::start:
      receive_start(from, packet, storage);
      break;
    case PacketKind::content:
    case PacketKind::sum:
      // The bytes are dropped after a failure, and if the call was given up.
      if (const auto call = calls_.find(head.number); call != calls_.end() && !agreement_.failed()) {
        call->second->receive(from, packet);
      }
      break;
    case PacketKind::report:
      agreement_.add(report_of(packet), now_seconds());
      break;
    case PacketKind::choice:
      agreement_.adopt(report_of(packet));
      break;
    case PacketKind::leave:
      left_at_[from] = head.number;
      break;
    case PacketKind::question:
      answer(from, head);
      break;
    case PacketKind::answer:
      search_.answered(from, head.number, head.rank);
      break;
  }
}

void PacketGroup::receive_start(int from, const PacketView& packet, Packet& storage) {
  const PacketHead& head = packet.head;
  if (agreement_.failed()) return;
  if (const auto call = calls_.find(head.number); call != calls_.end()) {
    call->second->peer_started(from, packet);
  } else if (head.number >= next_) {
    early_[head.number].push_back({from, std::move(storage)});
  } else if (head.call != CallKind::exchange) {
    // This rank has ended the call without waiting for `from`. So the call was an exchange in which
    // this rank and `from` had no message for each other.
    disagree(from, other_kind(head.call, CallKind::exchange));
  } else if (head.sends.bytes() > 0) {
    disagree(from, other_message(head.sends, rank(), {}, "exchange"));
  } else {
    disagree(rank(), other_message({}, from, head.expects, "exchange"));
  }
}

void PacketGroup::answer(int to, PacketHead head) {
  // A rank that knows of a failure waits for no rank, so an answer would make it look like the
  // culprit. It sends no answer; the rank that asks will hear of the failure too.
  if (agreement_.failed()) return;
  head.kind = PacketKind::answer;
  head.rank = hub_.waits_for();
  send(to, make_packet(head, 0));
}

bool PacketGroup::work() {
  bool any = false;
  if (!agreement_.failed()) {
    for (const auto& [number, call] : calls_) any = call->pump() || any;
  } else if (agreement_.due(now_seconds())) {
    agreement_.choose();
    const FailureReport& choice = *agreement_.choice();
    tell_all(head_of(choice, PacketKind::choice), choice.reason);
  }
  return any;
}

void PacketGroup::tell_all(PacketHead head, const std::string& text) {
  head.group = id_;
  for (int r = 0; r < size(); ++r) {
    if (r != rank()) send(r, make_packet(head, text));
  }
}

// ---- The functions below report failures and handle them.

void PacketGroup::report(const FailureReport& report) {
  agreement_.add(report, now_seconds());
  tell_all(head_of(report, PacketKind::report), report.reason);
}

void PacketGroup::disagree(int rank, const std::string& reason) {
  if (!agreement_.failed()) report({rank, this->rank(), false, reason});
}

void PacketGroup::check_blocker(const PacketCall& call, int blocker, Patience& patience) {
  if (left_at_[blocker] <= call.number()) {
    report({blocker, rank(), true, fmt::format("it ended while rank {} waits for it in '{}'", rank(), call.name())});
  } else if (hub_.gone(blocker)) {
    report({blocker, rank(), true,
            fmt::format("its process has ended while rank {} waits for it in '{}'", rank(), call.name())});
  } else if (patience.tick()) {
    search_culprit(call, blocker);
  }
}

void PacketGroup::search_culprit(const PacketCall& call, int blocker) {
  if (!search_.begun()) search_.begin(blocker);
  if (const auto asked = search_.next_to_ask()) {
    PacketHead question;
    question.group = id_;
    question.kind = PacketKind::question;
    question.number = search_.question();
    send(*asked, make_packet(question, 0));
  }
  if (const auto culprit = search_.culprit()) {
    report({*culprit, rank(), false,
            fmt::format("it keeps other ranks waiting for more than {} s{}; rank {} waits in '{}'", timeout_,
                        search_.silent() ? " and does not answer" : "", rank(), call.name())});
  }
}

RankFailure PacketGroup::await_choice(Lock& lock) {
  const Waiter waiter(hub_);
  for (int idle = 0; !agreement_.choice(); ++idle) {
    if (hub_.poll()) idle = 0;
    if (!agreement_.choice()) hub_.rest(lock, idle);
  }
  return RankFailure(*agreement_.choice());
}

RankFailure PacketGroup::pass_on(const RankFailure& failure) {
  const std::string prefix = RankFailure({failure.rank(), failure.rank(), true, ""}).what();
  const std::string text = failure.what();
  Lock lock = hub_.lock();
  // The rank that has failed may still give its own reason, so this report is vague.
  if (!agreement_.choice()) {
    report({failure.rank(), rank(), true, text.starts_with(prefix) ? text.substr(prefix.size()) : text});
  }
  return await_choice(lock);
}

bool PacketGroup::failed() {
  const Lock lock = hub_.lock();
  return agreement_.failed();
}

RankFailure PacketGroup::abort(const std::string& reason) {
  Lock lock = hub_.lock();
  if (!agreement_.choice()) report({rank(), rank(), false, reason});
  return await_choice(lock);
}

}  // namespace nacre

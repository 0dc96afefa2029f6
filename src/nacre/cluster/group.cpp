#include "nacre/cluster/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "nacre/base/log.h"
#include "nacre/cluster/disagreement.h"

namespace nacre {
namespace {

constexpr int64_t kPieceBytes = 512 << 10;
constexpr auto kNews = std::chrono::milliseconds(100);

template <class Byte>
MessageSize size_of(const RowRange<Byte>& rows) {
  return {rows.count, rows.row_bytes};
}

// Waits for all devices. Returns what went wrong, or an empty text.
std::string wait_for(const std::vector<std::shared_ptr<CopyTicket>>& tickets) {
  std::string error;
  for (const auto& ticket : tickets) {
    try {
      ticket->wait();
    } catch (const std::exception& failed) {
      error = failed.what();
    }
  }
  return error;
}

std::vector<std::shared_ptr<CopyTicket>> tickets_of(const std::vector<SharedJob*>& jobs) {
  std::vector<std::shared_ptr<CopyTicket>> all;
  for (const SharedJob* job : jobs) all.insert(all.end(), job->tickets.begin(), job->tickets.end());
  return all;
}

}  // namespace

RankGroup::RankGroup(int size, const GroupOptions& options)
    : size_(size),
      timeout_(options.timeout),
      memory_(options.memory != nullptr ? options.memory : std::make_shared<RankMemory>()),
      next_(size),
      left_(size),
      waiting_for_(size, -1) {}

// ---- Starting a call.

SharedCall& RankGroup::enter(Lock& lock, int rank, CallKind kind, const char* name) {
  if (vote_.failed()) throw_failure(lock);
  SharedCall& call = calls_[next_[rank]];
  if (call.started.empty()) {
    call.kind = kind;
    call.name = name;
    call.started.resize(size_);
    call.of_rank.resize(size_);
    call.texts.resize(kind == CallKind::gather ? size_ : 0);
  }
  if (call.kind != kind) {
    report(rank, rank, false, other_kind(kind, call.kind));
    throw_failure(lock);
  }
  return call;
}

uint64_t RankGroup::entered(Lock& lock, int rank, SharedCall& call) {
  call.started[rank] = true;
  ++call.num_started;
  compare_ends(call, rank);
  changed_.notify_all();
  const uint64_t number = next_[rank]++;
  if (memory_->queues()) {
    while (!vote_.failed() && run_piece(lock, call, rank)) {
    }
  }
  return number;
}

void RankGroup::add_end(SharedCall& call, int from, int to, const SendRows* send, const ReceiveRows* receive) {
  const auto [at, is_new] = call.messages.try_emplace({from, to});
  SharedJob& job = at->second;
  if (is_new) {
    job.copy.from_rank = from;
    job.copy.to_rank = to;
    call.of_rank[to].push_back(&job);
    if (from != to) call.of_rank[from].push_back(&job);
  }
  if (send != nullptr) {
    job.has_from = true;
    job.copy.from = send->rows;
  } else {
    job.has_to = true;
    job.copy.to = receive->rows;
  }
  job.ready = job.has_from && job.has_to;
}

void RankGroup::compare_ends(SharedCall& call, int rank) {
  for (SharedJob* job : call.of_rank[rank]) {
    if (call.kind != CallKind::exchange) break;
    RankMemory::Copy& copy = job->copy;
    if (!call.started[copy.from_rank] || !call.started[copy.to_rank]) continue;
    const MessageSize sent = size_of(copy.from), expected = size_of(copy.to);
    if (!job->ready || sent != expected) {
      report(copy.from_rank, rank, false, other_message(sent, copy.to_rank, expected, call.name));
      return;
    }
    job->total = sent.rows;
    job->piece = memory_->queues() ? sent.rows : std::max<int64_t>(1, kPieceBytes / sent.row_bytes);
  }
}

uint64_t RankGroup::start(int rank, const ExchangeRequest& request) {
  Lock lock(mutex_);
  SharedCall& call = enter(lock, rank, CallKind::exchange, request.name);
  for (const ReceiveRows& receive : request.receives) {
    if (receive.rows.bytes() > 0) add_end(call, receive.peer, rank, nullptr, &receive);
  }
  for (const SendRows& send : request.sends) {
    if (send.rows.bytes() > 0) add_end(call, rank, send.peer, &send, nullptr);
  }
  return entered(lock, rank, call);
}

uint64_t RankGroup::start(int rank, SumType type, void* data, int64_t count, const char* name) {
  Lock lock(mutex_);
  SharedCall& call = enter(lock, rank, CallKind::all_reduce, name);
  SharedJob& sum = call.sum;
  if (call.num_started == 0) {
    sum.type = type;
    sum.total = count;
    sum.piece = memory_->queues() ? std::max<int64_t>(1, count) : kPieceBytes / bytes_of(type);
    sum.parts.resize(size_);
  }
  if (sum.type != type || sum.total != count) {
    report(rank, rank, false, other_sum({type, count}, {sum.type, sum.total}, name));
    throw_failure(lock);
  }
  sum.parts[rank] = data;
  sum.ready = call.num_started + 1 == size_;
  call.of_rank[rank].push_back(&sum);
  return entered(lock, rank, call);
}

uint64_t RankGroup::start(int rank, const std::string& text) {
  Lock lock(mutex_);
  SharedCall& call = enter(lock, rank, CallKind::gather, "gather");
  call.texts[rank] = text;
  return entered(lock, rank, call);
}

// ---- Waiting for a call.

bool RankGroup::run_piece(Lock& lock, SharedCall& call, int rank) {
  const auto& jobs = call.of_rank[rank];
  const auto at = std::find_if(jobs.begin(), jobs.end(),
                               [](const SharedJob* job) { return job->ready && job->claimed < job->total; });
  if (at == jobs.end()) return false;
  SharedJob& job = **at;
  const int64_t begin = job.claimed, end = std::min(job.total, begin + job.piece);
  job.claimed = end;
  RankMemory::Copy copy = job.copy;
  copy.begin = begin;
  copy.end = end;
  lock.unlock();
  std::shared_ptr<CopyTicket> ticket;
  std::string error;
  try {
    ticket = job.parts.empty() ? memory_->copy(copy) : memory_->sum(job.type, job.parts, begin, end);
  } catch (const std::exception& failed) {
    error = failed.what();
  }
  lock.lock();
  job.done += end - begin;
  if (ticket != nullptr) job.tickets.push_back(std::move(ticket));
  if (!error.empty()) report(rank, rank, false, error);
  if (job.done == job.total || vote_.failed()) changed_.notify_all();
  return true;
}

bool RankGroup::complete(const SharedCall& call, int rank) const {
  if (call.kind != CallKind::exchange && call.num_started < size_) return false;
  const auto& jobs = call.of_rank[rank];
  return std::all_of(jobs.begin(), jobs.end(),
                     [](const SharedJob* job) { return job->ready && job->done == job->total; });
}

int RankGroup::blocker(const SharedCall& call, int rank) const {
  if (call.kind == CallKind::exchange) {
    for (const SharedJob* job : call.of_rank[rank]) {
      const int peer = job->copy.from_rank == rank ? job->copy.to_rank : job->copy.from_rank;
      if (job->done < job->total || !job->ready) return peer;
    }
  }
  for (int r = 0; r < size_; ++r) {
    if (!call.started[r]) return r;
  }
  return rank;
}

int RankGroup::culprit(int rank) const {
  int at = rank;
  for (int hops = 0; hops < size_ && waiting_for_[at] >= 0; ++hops) at = waiting_for_[at];
  return at;
}

void RankGroup::wait_for_news(Lock& lock, const SharedCall& call, int rank, Patience& patience) {
  const int peer = blocker(call, rank);
  if (left_[peer] && !call.started[peer]) {
    report(peer, rank, true, fmt::format("it ended while rank {} waits for it in '{}'", rank, call.name));
    return;
  }
  waiting_for_[rank] = peer;
  changed_.wait_for(lock, kNews);
  if (patience.tick() && !vote_.failed()) {
    report(culprit(rank), rank, false,
           fmt::format("it keeps other ranks waiting for more than {} s; rank {} waits in '{}'", timeout_, rank,
                       call.name));
  }
  waiting_for_[rank] = -1;
}

void RankGroup::finish(int rank, uint64_t number, std::vector<std::string>* texts) {
  Lock lock(mutex_);
  SharedCall& call = calls_.at(number);
  Patience patience(timeout_);
  while (true) {
    if (vote_.failed()) throw_failure(lock);
    if (complete(call, rank)) break;
    if (!run_piece(lock, call, rank)) wait_for_news(lock, call, rank, patience);
  }
  const auto tickets = tickets_of(call.of_rank[rank]);
  if (!tickets.empty()) {
    lock.unlock();
    const std::string error = wait_for(tickets);
    lock.lock();
    if (!error.empty()) {
      report(rank, rank, false, error);
      throw_failure(lock);
    }
  }
  if (texts != nullptr) *texts = call.texts;
  if (++call.num_finished == size_) calls_.erase(number);
}

// ---- Failures.

void RankGroup::report(int rank, int teller, bool vague, const std::string& reason) {
  vote_.add({rank, teller, vague, reason}, now_seconds());
  changed_.notify_all();
}

void RankGroup::throw_failure(Lock& lock) {
  while (!vote_.settled(now_seconds())) changed_.wait_for(lock, std::chrono::milliseconds(5));
  throw RankFailure(vote_.chosen());
}

void RankGroup::give_up(int rank, uint64_t number) {
  Lock lock(mutex_);
  SharedCall& call = calls_.at(number);
  if (!vote_.failed()) report(rank, rank, true, fmt::format("it gave up '{}' before it had ended", call.name));
  // No piece is claimed after a failure. So only those that are under way have to end.
  const auto& jobs = call.of_rank[rank];
  changed_.wait(lock, [&] {
    return std::all_of(jobs.begin(), jobs.end(), [](const SharedJob* job) { return job->claimed == job->done; });
  });
  const auto tickets = tickets_of(jobs);
  lock.unlock();
  wait_for(tickets);  // what went wrong does not matter any more
}

void RankGroup::leave(int rank) {
  const Lock lock(mutex_);
  left_[rank] = true;
  changed_.notify_all();
}

RankFailure RankGroup::abort(int rank, const std::string& reason) {
  Lock lock(mutex_);
  report(rank, rank, false, reason);
  while (!vote_.settled(now_seconds())) changed_.wait_for(lock, std::chrono::milliseconds(5));
  return RankFailure(vote_.chosen());
}

}  // namespace nacre

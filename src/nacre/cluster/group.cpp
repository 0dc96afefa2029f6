#include "nacre/cluster/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "nacre/base/log.h"
#include "nacre/cluster/disagreement.h"

namespace nacre {
namespace {

constexpr int64_t kPieceBytes = 512 << 10;
constexpr auto kNews = std::chrono::milliseconds(100);
constexpr auto kSpin = std::chrono::microseconds(30);

template <class Byte>
MessageSize size_of(const RowRange<Byte>& rows) {
  return {rows.count, rows.row_bytes};
}

bool is_done(const SharedJob& job) { return job.ready && job.done == job.total; }

// Returns whether the job no longer uses the memory of `rank`.
bool is_free(const SharedJob& job, int rank) {
  const bool sent = job.arrays.empty() && job.copy.from_rank == rank && job.copy.to_rank != rank;
  return is_done(job) || (sent && job.offer != nullptr && job.offer->is_copy());
}

}  // namespace

RankGroup::RankGroup(int size, const GroupOptions& options)
    : size_(size),
      options_(options),
      members_(options.members.empty() ? size : static_cast<int>(options.members.size())),
      memory_(options.memory != nullptr ? options.memory : std::make_shared<RankMemory>()),
      next_(size),
      left_(size),
      waiting_for_(size, -1) {}

// ---- The functions below start calls.

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

uint64_t RankGroup::entered(int rank, SharedCall& call) {
  call.started[rank] = true;
  ++call.num_started;
  compare_ends(call, rank);
  tell();
  return next_[rank]++;
}

SharedJob& RankGroup::add_end(SharedCall& call, int from, int to) {
  const auto [at, is_new] = call.messages.try_emplace({from, to});
  SharedJob& job = at->second;
  if (is_new) {
    job.copy.from_rank = from;
    job.copy.to_rank = to;
    if (!memory_->shared(from, to)) job.worker = to;
    call.of_rank[to].push_back(&job);
    if (from != to) call.of_rank[from].push_back(&job);
  }
  return job;
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
    job->piece = job->worker >= 0 ? sent.rows : std::max<int64_t>(1, kPieceBytes / sent.row_bytes);
  }
}

uint64_t RankGroup::start(int rank, const ExchangeRequest& request) {
  // offer() may queue work on a device, which takes a while. It is called before the lock is taken,
  // so that other ranks can go on meanwhile.
  const std::shared_ptr<RankTicket> begun = request.receives.empty() ? nullptr : memory_->begin(rank);
  std::vector<std::shared_ptr<RankOffer>> offers;
  for (const SendRows& send : request.sends) {
    const bool offered = send.rows.bytes() > 0 && !memory_->shared(rank, send.peer);
    offers.push_back(offered ? memory_->offer(rank, send.peer, send.rows) : nullptr);
  }
  Lock lock(mutex_);
  SharedCall& call = enter(lock, rank, CallKind::exchange, request.name);
  for (const ReceiveRows& receive : request.receives) {
    if (receive.rows.bytes() == 0) continue;
    SharedJob& job = add_end(call, receive.peer, rank);
    job.has_to = true;
    job.copy.to = receive.rows;
    job.copy.add = receive.add;
    job.copy.after = begun;
    if (receive.add) job.worker = rank;
    job.ready = job.has_from;
  }
  for (size_t i = 0; i < request.sends.size(); ++i) {
    const SendRows& send = request.sends[i];
    if (send.rows.bytes() == 0) continue;
    SharedJob& job = add_end(call, rank, send.peer);
    job.has_from = true;
    job.copy.from = send.rows;
    job.offer = std::move(offers[i]);
    job.ready = job.has_to;
  }
  return entered(rank, call);
}

void RankGroup::add_sum(SharedCall& call, int rank, void* data, std::shared_ptr<RankOffer> offer) {
  const bool all = call.num_started + 1 == size_;
  if (offer == nullptr) {
    call.sum.arrays[rank] = data;
    call.sum.ready = all;
    call.of_rank[rank].push_back(&call.sum);
    return;
  }
  call.offers.resize(size_);
  call.own_sums.resize(size_);
  call.offers[rank] = std::move(offer);
  SharedJob& own = call.own_sums[rank];
  own.arrays = {data};
  own.worker = rank;
  own.total = own.piece = call.sum.total;
  call.of_rank[rank].push_back(&own);
  if (!all) return;
  for (SharedJob& job : call.own_sums) job.ready = true;
}

uint64_t RankGroup::start(int rank, SumType type, void* data, int64_t count, const char* name) {
  std::shared_ptr<RankOffer> offer;
  if (!memory_->shares_sums()) offer = memory_->offer_array(rank, type, data, count);
  Lock lock(mutex_);
  SharedCall& call = enter(lock, rank, CallKind::all_reduce, name);
  SharedJob& sum = call.sum;
  if (call.num_started == 0) {
    sum.type = type;
    sum.total = count;
    sum.piece = kPieceBytes / bytes_of(type);
    sum.arrays.resize(size_);
  }
  if (sum.type != type || sum.total != count) {
    report(rank, rank, false, other_sum({type, count}, {sum.type, sum.total}, name));
    throw_failure(lock);
  }
  add_sum(call, rank, data, std::move(offer));
  return entered(rank, call);
}

uint64_t RankGroup::start(int rank, const std::string& text) {
  Lock lock(mutex_);
  SharedCall& call = enter(lock, rank, CallKind::gather, "gather");
  call.texts[rank] = text;
  return entered(rank, call);
}

// ---- The functions below wait for calls.

// Returns whether `rank` may do a piece of the job now. Rows that are added to the same receiver
// are added in the order of the senders, so such a job waits for those of lower senders.
bool RankGroup::may_run(const SharedCall& call, const SharedJob& job, int rank) const {
  if (!job.ready || job.claimed >= job.total || (job.worker >= 0 && job.worker != rank)) return false;
  if (!job.copy.add) return true;
  return std::all_of(call.messages.begin(), call.messages.end(), [&](const auto& message) {
    const RankMemory::Copy& other = message.second.copy;
    return other.to_rank != rank || other.from_rank >= job.copy.from_rank || is_done(message.second);
  });
}

void RankGroup::run_job(SharedCall& call, SharedJob& job, const RankMemory::Copy& copy, int rank) {
  if (!call.own_sums.empty()) {
    job.ticket = memory_->take_sum(rank, call.sum.type, call.offers, job.arrays[0], job.total);
  } else if (job.offer != nullptr) {
    job.ticket = memory_->take(rank, copy, *job.offer);
  } else if (job.arrays.empty()) {
    memory_->copy(copy);
  } else {
    memory_->sum(job.type, job.arrays, copy.begin, copy.end);
  }
}

bool RankGroup::run_piece(Lock& lock, SharedCall& call, int rank) {
  const auto& jobs = call.of_rank[rank];
  const auto at =
      std::find_if(jobs.begin(), jobs.end(), [&](const SharedJob* job) { return may_run(call, *job, rank); });
  if (at == jobs.end()) return false;
  SharedJob& job = **at;
  RankMemory::Copy copy = job.copy;
  copy.begin = job.claimed;
  copy.end = job.claimed = std::min(job.total, job.claimed + job.piece);
  lock.unlock();
  std::string error;
  try {
    run_job(call, job, copy, rank);
  } catch (const std::exception& failed) {
    error = failed.what();
  }
  lock.lock();
  job.done += copy.end - copy.begin;
  if (!error.empty()) report(rank, rank, false, error);
  if (job.done == job.total || vote_.failed()) tell();
  return true;
}

bool RankGroup::run_any_piece(Lock& lock, int rank) {
  return std::any_of(calls_.begin(), calls_.end(),
                     [&](auto& call) { return call.second.started[rank] && run_piece(lock, call.second, rank); });
}

bool RankGroup::complete(const SharedCall& call, int rank) const {
  if (call.kind != CallKind::exchange && call.num_started < size_) return false;
  const auto& jobs = call.of_rank[rank];
  return std::all_of(jobs.begin(), jobs.end(), [&](const SharedJob* job) { return is_free(*job, rank); });
}

int RankGroup::blocker(const SharedCall& call, int rank) const {
  if (call.kind == CallKind::exchange) {
    for (const SharedJob* job : call.of_rank[rank]) {
      const int peer = job->copy.from_rank == rank ? job->copy.to_rank : job->copy.from_rank;
      if (!is_free(*job, rank)) return peer;
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
  if (options_.waits) options_.waits(rank, peer);
  const uint64_t seen = news_;
  lock.unlock();
  // The thread first spins for kSpin before it sleeps: ranks of one process seldom wait long for
  // each other, and waking a thread takes longer than kSpin.
  const auto limit = std::chrono::steady_clock::now() + kSpin;
  while (news_ == seen && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  lock.lock();
  if (news_ == seen) changed_.wait_for(lock, kNews);
  if (patience.tick() && !vote_.failed() && (!options_.is_excused || !options_.is_excused(culprit(rank)))) {
    report(culprit(rank), rank, false,
           fmt::format("it keeps other ranks waiting for more than {} s; rank {} waits in '{}'", options_.timeout, rank,
                       call.name));
  }
  waiting_for_[rank] = -1;
  if (options_.waits) options_.waits(rank, -1);
}

double RankGroup::finish(int rank, uint64_t number, std::vector<std::string>* texts) {
  Lock lock(mutex_);
  SharedCall& call = calls_.at(number);
  Patience patience(options_.timeout);
  double idle = 0;
  while (true) {
    if (vote_.failed()) throw_failure(lock);
    if (complete(call, rank)) break;
    if (run_piece(lock, call, rank) || run_any_piece(lock, rank)) continue;
    const double start = now_seconds();
    wait_for_news(lock, call, rank, patience);
    idle += now_seconds() - start;
  }
  if (const std::string error = wait_for_work(lock, call, rank); !error.empty()) {
    report(rank, rank, false, error);
    throw_failure(lock);
  }
  if (texts != nullptr) *texts = call.texts;
  if (++call.num_finished == members_) calls_.erase(number);
  return idle;
}

std::string RankGroup::wait_for_work(Lock& lock, const SharedCall& call, int rank) {
  std::vector<std::shared_ptr<RankTicket>> tickets;
  for (const SharedJob* job : call.of_rank[rank]) {
    const bool takes = !job->arrays.empty() || job->copy.to_rank == rank;
    // If the offer is a copy, the sender does not wait for it: other ranks may still work on the
    // job then, so the sender must not look at the job's ticket.
    const bool sends = !takes && job->offer != nullptr && !job->offer->is_copy();
    if ((takes || sends) && job->ticket != nullptr) tickets.push_back(job->ticket);
  }
  if (tickets.empty()) return "";
  lock.unlock();
  std::string error;
  for (const auto& ticket : tickets) {
    try {
      memory_->wait(rank, *ticket);
    } catch (const std::exception& failed) {
      error = failed.what();
    }
  }
  lock.lock();
  return error;
}

// ---- The functions below report failures and handle them.

void RankGroup::tell() {
  ++news_;
  changed_.notify_all();
}

void RankGroup::report(int rank, int teller, bool vague, const std::string& reason) {
  vote_.add({rank, teller, vague, reason}, now_seconds());
  tell();
}

void RankGroup::throw_failure(Lock& lock) {
  while (!vote_.settled(now_seconds())) changed_.wait_for(lock, std::chrono::milliseconds(5));
  throw RankFailure(vote_.chosen());
}

void RankGroup::give_up(int rank, uint64_t number) {
  Lock lock(mutex_);
  SharedCall& call = calls_.at(number);
  if (!vote_.failed()) report(rank, rank, true, fmt::format("it gave up '{}' before it had ended", call.name));
  // No rank claims a piece after a failure, so it is enough to wait for the pieces that are being
  // done.
  const auto& jobs = call.of_rank[rank];
  changed_.wait(lock, [&] {
    return std::all_of(jobs.begin(), jobs.end(), [](const SharedJob* job) { return job->claimed == job->done; });
  });
  wait_for_work(lock, call, rank);  // the result is ignored, because the call has failed anyway
}

void RankGroup::leave(int rank) {
  const Lock lock(mutex_);
  left_[rank] = true;
  tell();
}

bool RankGroup::failed() {
  const Lock lock(mutex_);
  return vote_.failed();
}

RankFailure RankGroup::abort(int rank, const std::string& reason) {
  Lock lock(mutex_);
  report(rank, rank, false, reason);
  while (!vote_.settled(now_seconds())) changed_.wait_for(lock, std::chrono::milliseconds(5));
  return RankFailure(vote_.chosen());
}

}  // namespace nacre

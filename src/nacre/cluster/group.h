// RankGroup: what the ranks of one process share, which are their calls, matched by number.
// in_process.h makes communicators from it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nacre/cluster/call_kind.h"
#include "nacre/cluster/in_process.h"

namespace nacre {

// Holds one message between two ranks, or one sum over all ranks. A job is cut into pieces, each of
// which any rank that waits for the job may claim.
struct SharedJob {
  bool has_from = false, has_to = false;  // whether sender and receiver have given their rows
  RankMemory::Copy copy{};
  SumType type = SumType::f32;
  std::vector<void*> arrays;  // for a sum: the array of each rank; empty for a message
  bool ready = false;         // whether all ranks that take part have given their memory
  // These members count rows of a message, or elements of a sum: how many there are in all, belong
  // to a piece, have been claimed by a rank, and are done.
  int64_t total = 0, piece = 1, claimed = 0, done = 0;
  // This rank does the job alone, because the job is not shared or because rows are added in order;
  // -1 if any rank that takes part may do it.
  int worker = -1;
  std::shared_ptr<RankOffer> offer;  // what the sender offers, if the message is not shared
  // The ticket belongs to the work that reads offers; it may be null. The rank that does the work
  // sets it. The sender of a message may look at it when the job is done.
  std::shared_ptr<RankTicket> ticket;
};

// Holds one call of all ranks.
struct SharedCall {
  CallKind kind = CallKind::exchange;
  const char* name = "";
  std::vector<bool> started;
  int num_started = 0, num_finished = 0;
  std::map<std::pair<int, int>, SharedJob> messages;  // messages by sender and receiver
  SharedJob sum;
  // `offers` has what each rank offers, and `own_sums` has the job of each rank, if sums are not
  // shared.
  std::vector<std::shared_ptr<RankOffer>> offers;
  std::vector<SharedJob> own_sums;
  std::vector<std::vector<SharedJob*>> of_rank;  // for each rank, the jobs that it takes part in
  std::vector<std::string> texts;
};

class RankGroup {
 public:
  RankGroup(int size, const GroupOptions& options);

  // Each start() starts the next call of `rank` and returns its number.
  uint64_t start(int rank, const ExchangeRequest& request);
  uint64_t start(int rank, SumType type, void* data, int64_t count, const char* name);
  uint64_t start(int rank, const std::string& text);
  // Waits for a call of `rank`. If the call is a gather, sets *texts to the texts of all ranks.
  // Returns the seconds in which the rank waited for others and had nothing to copy or add.
  double finish(int rank, uint64_t number, std::vector<std::string>* texts);
  // Gives up a call of `rank`, which has failed then. Returns when nobody touches the memory that
  // `rank` gave to the call.
  void give_up(int rank, uint64_t number);
  void leave(int rank);
  RankFailure abort(int rank, const std::string& reason);
  bool failed();
  RankMemory& memory() { return *memory_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  SharedCall& enter(Lock& lock, int rank, CallKind kind, const char* name);
  uint64_t entered(int rank, SharedCall& call);
  SharedJob& add_end(SharedCall& call, int from, int to);
  void add_sum(SharedCall& call, int rank, void* data, std::shared_ptr<RankOffer> offer);
  // Compares the two ends of each message of `rank`. Reports a failure if two ranks that have both
  // started the call disagree about a message.
  void compare_ends(SharedCall& call, int rank);
  // Does a piece of a job of this call that `rank` takes part in. Returns false if there is none to
  // do.
  bool run_piece(Lock& lock, SharedCall& call, int rank);
  // Does a piece of any call that `rank` has started, because other ranks may wait for their calls
  // in another order. Returns false if there is none to do.
  bool run_any_piece(Lock& lock, int rank);
  bool may_run(const SharedCall& call, const SharedJob& job, int rank) const;
  void run_job(SharedCall& call, SharedJob& job, const RankMemory::Copy& copy, int rank);
  // Makes the later work of `rank` wait for queued work of the call that reads or writes its
  // memory. Returns the error of a wait that failed, or an empty text.
  std::string wait_for_work(Lock& lock, const SharedCall& call, int rank);
  bool complete(const SharedCall& call, int rank) const;
  // Returns a rank that `rank` waits for in the call, or `rank` if there is none.
  int blocker(const SharedCall& call, int rank) const;
  // Follows the chain of ranks that wait for each other from `rank` on, and returns its last rank.
  int culprit(int rank) const;
  void report(int rank, int teller, bool vague, const std::string& reason);
  [[noreturn]] void throw_failure(Lock& lock);
  // Wakes all waiting ranks, because the state of a call or of a rank has changed.
  void tell();
  // Waits up to a tenth of a second until tell() is called. Reports a failure when the rank has
  // waited for longer than the timeout.
  void wait_for_news(Lock& lock, const SharedCall& call, int rank, Patience& patience);

  int size_;
  GroupOptions options_;
  int members_;  // ranks that belong to the group
  std::shared_ptr<RankMemory> memory_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::atomic<uint64_t> news_{0};  // how often tell() was called
  std::map<uint64_t, SharedCall> calls_;
  std::vector<uint64_t> next_;    // the number of each rank's next call
  std::vector<bool> left_;        // ranks whose communicator is gone
  std::vector<int> waiting_for_;  // for each rank the rank that it waits for; -1: it does not wait
  FailureVote vote_;
};

}  // namespace nacre

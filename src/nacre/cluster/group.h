// What the ranks of one process share: their calls, matched by number. See in_process.h.
#pragma once

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

// A message between two ranks or one sum over all. It is cut into pieces, which any rank that waits
// for it may claim.
struct SharedJob {
  bool has_from = false, has_to = false;  // which ends of a message are known
  RankMemory::Copy copy{};
  SumType type = SumType::f32;
  std::vector<void*> parts;  // of a sum: by rank; a message has none
  bool ready = false;        // all ends are known
  // in rows of a message or elements of a sum
  int64_t total = 0, piece = 1, claimed = 0, done = 0;
  std::vector<std::shared_ptr<CopyTicket>> tickets;
};

// One call of all ranks.
struct SharedCall {
  CallKind kind = CallKind::exchange;
  const char* name = "";
  std::vector<bool> started;
  int num_started = 0, num_finished = 0;
  std::map<std::pair<int, int>, SharedJob> messages;  // by sender and receiver
  SharedJob sum;
  std::vector<std::vector<SharedJob*>> of_rank;  // jobs that a rank takes part in
  std::vector<std::string> texts;
};

class RankGroup {
 public:
  RankGroup(int size, const GroupOptions& options);

  // These start the next call of `rank` and return its number.
  uint64_t start(int rank, const ExchangeRequest& request);
  uint64_t start(int rank, SumType type, void* data, int64_t count, const char* name);
  uint64_t start(int rank, const std::string& text);
  // Waits for a call of `rank`. If it is a gather, sets *texts. Returns the seconds in which the rank
  // waited for others and had nothing to copy or add.
  double finish(int rank, uint64_t number, std::vector<std::string>* texts);
  // Returns when nobody touches the memory that `rank` gave to the call. The rank has failed.
  void give_up(int rank, uint64_t number);
  void leave(int rank);
  RankFailure abort(int rank, const std::string& reason);

 private:
  using Lock = std::unique_lock<std::mutex>;

  SharedCall& enter(Lock& lock, int rank, CallKind kind, const char* name);
  uint64_t entered(Lock& lock, int rank, SharedCall& call);
  void add_end(SharedCall& call, int from, int to, const SendRows* send, const ReceiveRows* receive);
  // Reports a failure if two ranks that have both started the call disagree about a message.
  void compare_ends(SharedCall& call, int rank);
  // Does a piece of a job that `rank` takes part in. Returns false if there is none to do.
  bool run_piece(Lock& lock, SharedCall& call, int rank);
  bool complete(const SharedCall& call, int rank) const;
  // Returns a rank that `rank` waits for in the call.
  int blocker(const SharedCall& call, int rank) const;
  // Returns the rank at the end of the chain of ranks that wait for each other.
  int culprit(int rank) const;
  void report(int rank, int teller, bool vague, const std::string& reason);
  [[noreturn]] void throw_failure(Lock& lock);
  // Waits up to a tenth of a second for news. Reports a failure when the patience is at its end.
  void wait_for_news(Lock& lock, const SharedCall& call, int rank, Patience& patience);

  int size_;
  double timeout_;
  std::shared_ptr<RankMemory> memory_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<uint64_t, SharedCall> calls_;
  std::vector<uint64_t> next_;    // the number of each rank's next call
  std::vector<bool> left_;        // ranks whose communicator is gone
  std::vector<int> waiting_for_;  // for each rank the rank that it waits for; -1: it does not wait
  FailureVote vote_;
};

}  // namespace nacre

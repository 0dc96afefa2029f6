// Communicator: how ranks exchange rows, add up arrays and tell each other small texts. A rank is a
// device with a share of the vertices. It is driven by a thread of one process (in_process.h) or by
// a process of its own.
//
// All ranks of a communicator make the same calls in the same order, as in MPI. Calls of one rank
// come from one thread at a time; only abort(), pass_on() and failed() may come from any thread at
// any time.
//
// If a rank fails, every pending and later call of every rank throws the same RankFailure. A rank
// fails when it calls abort(), when its communicator or one of its pending calls is destroyed
// although others still need it, and when others have waited for it longer than the timeout.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/cluster/device_seconds.h"
#include "nacre/cluster/failure.h"
#include "nacre/cluster/rows.h"
#include "nacre/cluster/sums.h"

namespace nacre {

// Ranks wait for each other for this many seconds. A rank that has not come by then is said to have
// failed.
inline constexpr double kCommTimeout = 60;

struct SendRows {
  int peer = 0;
  ConstRows rows;
};

struct ReceiveRows {
  int peer = 0;
  Rows rows;
  // If `add` has a value, the received rows are added to `rows`; otherwise they replace them.
  // Messages of several peers are added in the order of the ranks, so the same rows may be named
  // for several peers.
  std::optional<SumType> add = std::nullopt;
};

// Holds the rows that one rank sends and receives in one call. There is at most one message from
// each peer and to each peer. A peer may be the rank itself. Both ends of a message must give it
// the same size; messages of zero bytes may be left out on either side.
struct ExchangeRequest {
  std::vector<SendRows> sends;
  std::vector<ReceiveRows> receives;
  // The name says in error messages and traces what is exchanged. The text must outlive the trace.
  const char* name = "exchange";
  // This member says whether any rank adds what it receives (ReceiveRows::add). All ranks of a call
  // give it the same value.
  bool adds = false;
};

// Counts what one call moved and how long it took. Messages of a rank to itself are not counted.
struct CallCounters {
  int64_t calls = 0;
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  double elapsed = 0;  // seconds from start to the end of wait()
  double waited = 0;   // the part of `elapsed` inside wait()
  // `idle` is the part of `waited` in which nothing could be done before another rank came.
  double idle = 0;

  CallCounters& operator+=(const CallCounters& other);
};

// Holds the sums of the counters of all finished calls of one rank.
struct CommCounters {
  CallCounters exchange;
  CallCounters all_reduce;
  CallCounters gather;  // all_gather(), broadcast(), barrier()
};

// CommOperation is a call that an implementation of Communicator has started.
class CommOperation {
 public:
  // Gives the call up unless finish() has returned. After that, the call does not touch the rank's
  // memory any more, and the rank counts as failed.
  virtual ~CommOperation() = default;
  // Returns when the call no longer uses the rank's memory and the result lies there. Throws
  // RankFailure.
  virtual void finish() = 0;
  // Returns the seconds of finish() in which the rank could do nothing but wait for other ranks.
  virtual double idle_seconds() const { return 0; }
};

// PendingCall is a call that goes on while its rank computes. The memory given to the call must
// stay allocated: until wait() has returned, memory that is sent must not change, and memory that
// is received must not be used. Pending calls may be waited for in any order, but not after the
// communicator was destroyed.
class PendingCall {
 public:
  PendingCall(std::unique_ptr<CommOperation> operation, const char* name, CallCounters counters,
              std::shared_ptr<CallCounters> total);
  ~PendingCall();
  PendingCall(PendingCall&&) noexcept;
  PendingCall& operator=(PendingCall&&) = delete;

  // Waits for the end of the call. Calls after the first do nothing.
  void wait();
  // Returns what this call did. The counters are complete after wait().
  const CallCounters& counters() const { return counters_; }

 private:
  std::unique_ptr<CommOperation> operation_;  // null after wait()
  const char* name_;
  CallCounters counters_;
  double started_;
  std::shared_ptr<CallCounters> total_;
};

class Communicator {
 public:
  // A rank that destroys its communicator takes part in no further call.
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Starts a call in which every rank sends rows to some ranks and receives rows from some. Lists
  // of row numbers must stay unchanged until wait() has returned, like the rows.
  [[nodiscard]] PendingCall start_exchange(const ExchangeRequest& request);
  void exchange(const ExchangeRequest& request) { start_exchange(request).wait(); }

  // Starts a call that replaces the `count` elements at `data` by their sums over all ranks. The
  // bits are the same on all ranks (sums.h). `name` must outlive the trace.
  [[nodiscard]] PendingCall start_all_reduce(SumType type, void* data, int64_t count, const char* name = "all_reduce");
  void all_reduce(float* data, int64_t count) { start_all_reduce(SumType::f32, data, count).wait(); }
  void all_reduce(double* data, int64_t count) { start_all_reduce(SumType::f64, data, count).wait(); }

  // Returns the texts of all ranks, in their order. Texts may hold any bytes and should be short.
  std::vector<std::string> all_gather(std::string_view own);
  // Returns the text of rank `root`. The texts that other ranks give are ignored.
  std::string broadcast(int root, std::string_view text);
  // Waits until all ranks have called barrier().
  void barrier() { all_gather(""); }

  // Says that this rank has failed, for the given reason. Returns the failure that all ranks throw:
  // the failure of this rank, or that of another rank that failed at the same time.
  virtual RankFailure abort(const std::string& reason) = 0;
  // Tells the ranks of a failure that another communicator of the same ranks has thrown. Returns
  // the failure on which the ranks agree. Ranks may hear of one failure from different
  // communicators, each of which names another rank to print it.
  virtual RankFailure pass_on(const RankFailure& failure) { return abort(failure.what()); }
  // Returns whether a rank is known to have failed. Any thread may call this at any time.
  virtual bool failed() const = 0;

  CommCounters counters() const;

  // Switches on or off whether the device of this rank measures the time of its communication, for
  // calls that start from now on. A rank's thread need not wait for its device, so the counters do
  // not hold this time. Ranks without a device, whose values lie in host memory, measure nothing.
  virtual void measure(bool /*on*/) {}
  // Waits for the device, and returns the seconds that it has spent on communication since the last
  // call of take_seconds().
  virtual DeviceSeconds take_seconds() { return {}; }

 protected:
  struct Reduction {
    SumType type;
    void* data;
    int64_t count;
    const char* name;
  };

  Communicator(int rank, int size);
  virtual std::unique_ptr<CommOperation> begin(const ExchangeRequest& request) = 0;
  virtual std::unique_ptr<CommOperation> begin(const Reduction& reduction) = 0;
  // Starts a gather. `texts` has an entry for each rank: the caller gives the entry of this rank,
  // and finish() sets the others.
  virtual std::unique_ptr<CommOperation> begin(std::vector<std::string>& texts) = 0;

 private:
  void check(const ExchangeRequest& request) const;

  int rank_, size_;
  // Pending calls share these counters, because they may be destroyed after the communicator.
  std::shared_ptr<CallCounters> exchanged_, reduced_, gathered_;
};

}  // namespace nacre

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

// Seconds that ranks wait for each other before the one that does not come is said to have failed.
inline constexpr double kCommTimeout = 60;

struct SendRows {
  int peer = 0;
  ConstRows rows;
};

struct ReceiveRows {
  int peer = 0;
  Rows rows;
  // If this is set, what arrives is added to the rows instead of replacing them. Messages of
  // several peers are added in the order of the ranks, so the same rows may be named for several
  // peers.
  std::optional<SumType> add = std::nullopt;
};

// Rows that one rank sends and receives in one call. There is at most one message from each peer
// and to each peer. A peer may be the rank itself. Both ends of a message must give it the same
// size; messages of zero bytes may be left out on either side.
struct ExchangeRequest {
  std::vector<SendRows> sends;
  std::vector<ReceiveRows> receives;
  // What is exchanged, for messages and traces. The text must outlive the trace.
  const char* name = "exchange";
  // Whether some ranks add what they receive (ReceiveRows::add). All ranks of a call say the same.
  bool adds = false;
};

// What one call moved and how long it took. Messages of a rank to itself are not counted.
struct CallCounters {
  int64_t calls = 0;
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  double elapsed = 0;  // seconds from start to the end of wait()
  double waited = 0;   // the part of these seconds inside wait()
  // The part of these seconds in which nothing could be done before another rank came.
  double idle = 0;

  CallCounters& operator+=(const CallCounters& other);
};

// Sums over all finished calls of one rank.
struct CommCounters {
  CallCounters exchange;
  CallCounters all_reduce;
  CallCounters gather;  // all_gather(), broadcast(), barrier()
};

// A call that an implementation has started.
class CommOperation {
 public:
  // Gives the call up unless finish() has returned: the rank's memory is not touched afterwards,
  // and the rank has failed.
  virtual ~CommOperation() = default;
  // Returns when the rank's memory is its own again and holds the result. Throws RankFailure.
  virtual void finish() = 0;
  // Returns the seconds of finish() in which the rank could do nothing but wait for other ranks.
  virtual double idle_seconds() const { return 0; }
};

// A call that goes on while its rank computes. The memory it was given must stay: what is sent must
// not change, and what is received must not be used, until wait() has returned. A pending call may
// be waited for in any order, but not after the communicator was destroyed.
class PendingCall {
 public:
  PendingCall(std::unique_ptr<CommOperation> operation, const char* name, CallCounters counters,
              std::shared_ptr<CallCounters> total);
  ~PendingCall();
  PendingCall(PendingCall&&) noexcept;
  PendingCall& operator=(PendingCall&&) = delete;

  // Waits for the end of the call. Calls after the first do nothing.
  void wait();
  // Returns what this call did; complete after wait().
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

  // Every rank sends rows to some ranks and receives rows from some. Lists of row numbers must stay
  // unchanged until wait() has returned, like the rows.
  [[nodiscard]] PendingCall start_exchange(const ExchangeRequest& request);
  void exchange(const ExchangeRequest& request) { start_exchange(request).wait(); }

  // Replaces the `count` elements at `data` by their sums over all ranks. The bits are the same on
  // all ranks (sums.h). `name` must outlive the trace.
  [[nodiscard]] PendingCall start_all_reduce(SumType type, void* data, int64_t count, const char* name = "all_reduce");
  void all_reduce(float* data, int64_t count) { start_all_reduce(SumType::f32, data, count).wait(); }
  void all_reduce(double* data, int64_t count) { start_all_reduce(SumType::f64, data, count).wait(); }

  // Returns the texts of all ranks, in their order. Texts may hold any bytes and should be short.
  std::vector<std::string> all_gather(std::string_view own);
  // Returns the text of rank `root`; those of other ranks are ignored.
  std::string broadcast(int root, std::string_view text);
  // Returns when all ranks have called it.
  void barrier() { all_gather(""); }

  // Says that this rank has failed. Returns the failure that all ranks throw: this one, or that of
  // another rank that failed at the same time.
  virtual RankFailure abort(const std::string& reason) = 0;
  // Tells the ranks of a failure that another communicator of theirs has thrown. Returns the
  // failure that they agree on. Ranks may hear of one failure from different communicators, each of
  // which names another rank to print it.
  virtual RankFailure pass_on(const RankFailure& failure) { return abort(failure.what()); }
  // Returns whether a rank is known to have failed. Any thread may call this at any time.
  virtual bool failed() const = 0;

  CommCounters counters() const;

  // Says whether the device of this rank measures what it does in calls from now on. A rank's
  // thread need not wait for its device, so the counters do not tell this. Ranks without a device,
  // whose values lie in host memory, measure nothing.
  virtual void measure(bool /*on*/) {}
  // Returns the seconds of the communication that the device has done since the last call of this
  // function, and waits for the device.
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
  // `texts` has an entry for each rank; that of this rank is given, finish() sets the others.
  virtual std::unique_ptr<CommOperation> begin(std::vector<std::string>& texts) = 0;

 private:
  void check(const ExchangeRequest& request) const;

  int rank_, size_;
  // Shared with pending calls, which may be destroyed after the communicator.
  std::shared_ptr<CallCounters> exchanged_, reduced_, gathered_;
};

}  // namespace nacre

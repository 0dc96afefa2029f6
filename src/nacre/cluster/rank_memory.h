// RankMemory: copies and adds the values of ranks for the in-process communicator. This class does
// so in host memory. The class for ranks on GPUs (engine/rank_memory.h) is derived from it, and
// queues the copies on the devices.
//
// A message is shared if both ends are host memory: threads of both ranks copy pieces of it while
// they wait. In any other message, the sender offers its rows when it starts the call, and the
// thread of the receiver takes them. Nobody waits for a device: take() only queues a copy beside
// the other work of the receiver, and returns a ticket. At the end of the call, the later work of
// the receiver waits for the copy, and so does that of the sender if the offer is no copy.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "nacre/cluster/device_seconds.h"
#include "nacre/cluster/rows.h"
#include "nacre/cluster/sums.h"

namespace nacre {

// Rows or an array that one rank lets others read.
class RankOffer {
 public:
  virtual ~RankOffer() = default;
  // Returns whether the offer is a copy. The rank that offers a copy need not wait until others
  // have read it.
  virtual bool is_copy() const = 0;
};

// A point of time: what a device has queued so far, or the end of work that reads the memory of
// another rank.
class RankTicket {
 public:
  virtual ~RankTicket() = default;
};

class RankMemory {
 public:
  virtual ~RankMemory() = default;

  // Returns whether messages between the two ranks are shared.
  virtual bool shared(int /*from*/, int /*to*/) const { return true; }
  // Returns whether all ranks add up arrays in shared host memory.
  virtual bool shares_sums() const { return true; }

  // Describes a message, or rows [begin, end) of it.
  struct Copy {
    int from_rank, to_rank;
    ConstRows from;
    Rows to;
    // If this is set, the rows are added to the rows of the receiver instead of replacing them.
    std::optional<SumType> add;
    int64_t begin, end;
    // What begin() returned when the receiver started the call.
    std::shared_ptr<RankTicket> after = nullptr;
  };
  // These two are for shared memory. The communicator calls them from the threads of any rank,
  // several at once.
  virtual void copy(const Copy& copy);
  // Does what sum_in_place() does.
  virtual void sum(SumType type, std::span<void* const> arrays, int64_t begin, int64_t end);

  // The functions below are for memory that is not shared. The thread of the rank that comes first
  // among their arguments calls them.

  // Notes what `rank` has queued until now, when it starts a call: what it receives must not be
  // written earlier. Returns null if the rank does all its work in its thread.
  virtual std::shared_ptr<RankTicket> begin(int /*rank*/) { return nullptr; }
  // Offers rows to rank `to`.
  virtual std::shared_ptr<RankOffer> offer(int from, int to, const ConstRows& rows);
  // Offers an array to all ranks. Work that the rank queues later may overwrite the array.
  virtual std::shared_ptr<RankOffer> offer_array(int rank, SumType type, const void* array, int64_t count);
  // Copies or adds the offered rows into the memory of copy.to_rank. Returns null if this has been
  // done, and otherwise a ticket.
  virtual std::shared_ptr<RankTicket> take(int to, const Copy& copy, RankOffer& offer);
  // Writes the sum of the offered arrays to `out`, in the memory of `rank`. Returns null if this
  // has been done, and otherwise a ticket.
  virtual std::shared_ptr<RankTicket> take_sum(int rank, SumType type,
                                               std::span<const std::shared_ptr<RankOffer>> offers, void* out,
                                               int64_t count);
  // Makes work that `rank` begins or queues from now on wait for the work of a ticket.
  virtual void wait(int rank, RankTicket& ticket);

  // Says whether the device of `rank` measures what it does in calls from now on. The threads of
  // ranks do not wait for devices, so the counters of a communicator do not tell this.
  virtual void measure(int /*rank*/, bool /*on*/) {}
  // Returns what the device of `rank` has done since the last call of this function, and waits for
  // it. Returns zeros for a rank without a device.
  virtual DeviceSeconds take_seconds(int /*rank*/) { return {}; }
};

}  // namespace nacre

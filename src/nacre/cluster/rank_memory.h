// RankMemory: copies and adds the values of ranks for the in-process communicator. This class does
// so in host memory. The class for ranks on GPUs (engine/rank_memory.h) is derived from it, and
// queues the copies on the devices.
//
// A message is shared if both ends are host memory: threads of both ranks copy pieces of it while
// they wait. In any other message, the sender offers its rows when it starts the call, and the
// thread of the receiver takes them. Nobody waits for a device: take() only queues a copy beside
// the other work of the receiver, and returns a ticket. At the end of the call, the later work of
// the receiver is made to wait for the copy. The later work of the sender waits for it too, unless
// the offer is a copy of the sender's rows.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "nacre/cluster/device_seconds.h"
#include "nacre/cluster/rows.h"
#include "nacre/cluster/sums.h"

namespace nacre {

// RankOffer stands for rows or an array that one rank lets other ranks read.
class RankOffer {
 public:
  virtual ~RankOffer() = default;
  // Returns whether the offer is a copy. The rank that offers a copy need not wait until others
  // have read it.
  virtual bool is_copy() const = 0;
};

// RankTicket stands for a point in time: the end of the work that a device has queued so far, or
// the end of work that reads the memory of another rank.
class RankTicket {
 public:
  virtual ~RankTicket() = default;
};

class RankMemory {
 public:
  virtual ~RankMemory() = default;

  // Returns whether messages from rank `from` to rank `to` are shared.
  virtual bool shared(int /*from*/, int /*to*/) const { return true; }
  // Returns whether all ranks add up arrays in shared host memory.
  virtual bool shares_sums() const { return true; }

  // Describes a message, or rows [begin, end) of it.
  struct Copy {
    int from_rank, to_rank;
    ConstRows from;
    Rows to;
    // If `add` has a value, the rows are added to the rows of the receiver; otherwise they replace
    // them.
    std::optional<SumType> add;
    int64_t begin, end;
    // This is the ticket that begin() returned when the receiver started the call.
    std::shared_ptr<RankTicket> after = nullptr;
  };
  // copy() and sum() are for shared memory. The communicator calls them from the threads of any
  // rank, several at once. copy() copies or adds rows [copy.begin, copy.end) of a message.
  virtual void copy(const Copy& copy);
  // Replaces elements [begin, end) of all arrays by their sums, as sum_in_place() does.
  virtual void sum(SumType type, std::span<void* const> arrays, int64_t begin, int64_t end);

  // The functions below are for memory that is not shared. Each of them is called by the thread of
  // the rank that is its first argument.

  // Returns a ticket for the work that `rank` has queued when it starts a call, because the memory
  // that it receives into must not be written before that work has ended. Returns null if the rank
  // does all its work in its thread.
  virtual std::shared_ptr<RankTicket> begin(int /*rank*/) { return nullptr; }
  // Offers rows of rank `from` to rank `to`.
  virtual std::shared_ptr<RankOffer> offer(int from, int to, const ConstRows& rows);
  // Offers an array of `rank` to all ranks. Work that the rank queues later may overwrite the
  // array.
  virtual std::shared_ptr<RankOffer> offer_array(int rank, SumType type, const void* array, int64_t count);
  // Copies or adds the offered rows into the memory of copy.to_rank. Returns null if the rows are
  // there on return, and otherwise a ticket for the queued work.
  virtual std::shared_ptr<RankTicket> take(int to, const Copy& copy, RankOffer& offer);
  // Writes the sum of the offered arrays to `out`, in the memory of `rank`. Returns null if the sum
  // is there on return, and otherwise a ticket for the queued work.
  virtual std::shared_ptr<RankTicket> take_sum(int rank, SumType type,
                                               std::span<const std::shared_ptr<RankOffer>> offers, void* out,
                                               int64_t count);
  // Makes work that `rank` begins or queues from now on wait for the work of a ticket.
  virtual void wait(int rank, RankTicket& ticket);

  // Switches on or off whether the device of `rank` measures its communication in calls that start
  // from now on. The threads of ranks do not wait for devices, so the counters of a communicator do
  // not hold these times.
  virtual void measure(int /*rank*/, bool /*on*/) {}
  // Waits for the device of `rank`, and returns the seconds that it has spent on communication
  // since the last call of take_seconds(). Returns zeros for a rank without a device.
  virtual DeviceSeconds take_seconds(int /*rank*/) { return {}; }
};

}  // namespace nacre

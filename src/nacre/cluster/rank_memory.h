// How the in-process communicator touches the memory of ranks. The default copies and adds in host
// memory. An engine whose ranks keep their values on GPUs derives a class that copies from device
// to device.
#pragma once

#include <memory>
#include <span>

#include "nacre/cluster/rows.h"
#include "nacre/cluster/sums.h"

namespace nacre {

// Work that a device does by itself.
class CopyTicket {
 public:
  virtual ~CopyTicket() = default;
  // Returns when the work is done. May be called from several threads at once, and several times.
  virtual void wait() = 0;
};

class RankMemory {
 public:
  virtual ~RankMemory() = default;

  // Returns whether copy() and sum() only queue their work. If so, they are called as soon as all
  // ranks that take part have started the call, and the ranks go on computing. Otherwise they are
  // called by ranks that wait.
  virtual bool queues() const { return false; }

  // One message, or rows [begin, end) of it.
  struct Copy {
    int from_rank, to_rank;
    ConstRows from;
    Rows to;
    int64_t begin, end;
  };
  // Copies rows. Returns null if they have arrived, and otherwise a ticket. The communicator calls
  // both functions from the threads of any rank, several at once.
  virtual std::shared_ptr<CopyTicket> copy(const Copy& copy);
  // Does what sum_in_place() does; parts[r] lies in the memory of rank r.
  virtual std::shared_ptr<CopyTicket> sum(SumType type, std::span<void* const> parts, int64_t begin, int64_t end);
};

}  // namespace nacre

// RankTeam: the ranks of a run as one of them sees them. Rank 0 goes on by itself and makes its
// calls whenever it wants to; the other ranks make the same calls at the same time. Ranks are
// threads of one process (rank_threads.h) or processes (MpiTeam).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nacre/cluster/mpi.h"

namespace nacre {

// The two communicators of a rank.
struct RankCalls {
  Communicator& data;     // moves the rows that ranks compute with, in the memory of their devices
  Communicator& control;  // moves everything else, in host memory
};

class RankTeam {
 public:
  virtual ~RankTeam() = default;

  // Returns the communicators of this rank.
  virtual RankCalls calls() = 0;
  // Must be called inside a handler of an exception that this rank threw or caught. Tells the other
  // ranks that the run has failed, and throws what the failed rank threw, as far as it is known.
  [[noreturn]] virtual void fail() = 0;
};

// The team of a process that MPI has started. `ranks` must outlive the team.
class MpiTeam : public RankTeam {
 public:
  // Connects the ranks in host memory, for everything but the values of the graph.
  // connect_devices() connects them for these.
  MpiTeam(MpiRanks& ranks, double timeout);
  Communicator& control() { return *control_; }
  // Connects the devices of the ranks. All ranks call this at the same time, at first and whenever
  // their devices have been opened anew. `open` is called when nothing of the team uses the old
  // device any more. It is given a communicator of host memory and returns the one of the device.
  using Open = std::function<std::unique_ptr<Communicator>(std::unique_ptr<Communicator> host)>;
  void connect_devices(const Open& open);
  // Returns the communicators of this rank. connect_devices() must have been called before.
  RankCalls calls() override { return {*data_, *control_}; }
  [[noreturn]] void fail() override;

 private:
  MpiRanks& ranks_;
  double timeout_;
  std::unique_ptr<Communicator> control_, data_;
};

}  // namespace nacre

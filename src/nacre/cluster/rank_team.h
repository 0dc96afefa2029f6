// RankTeam: the ranks of a run as one of them sees them. Rank 0 makes its calls whenever its own
// code needs them; the other ranks make the same calls at the same time. Ranks are threads of one
// process (rank_threads.h) or processes (MpiTeam).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nacre/cluster/mpi.h"

namespace nacre {

// Holds the two communicators of a rank.
struct RankCalls {
  Communicator& data;     // moves the rows that ranks compute with, in the memory of their devices
  Communicator& control;  // moves everything else, in host memory
};

class RankTeam {
 public:
  virtual ~RankTeam() = default;

  // Returns the communicators of this rank.
  virtual RankCalls calls() = 0;
  // Tells the other ranks that the run has failed, and throws what the failed rank threw, as far as
  // that is known. Must be called inside a handler of an exception that this rank threw or caught.
  [[noreturn]] virtual void fail() = 0;
};

// MpiTeam is the team of a process that MPI has started. `ranks` must outlive the team.
class MpiTeam : public RankTeam {
 public:
  // Connects the ranks by the communicator that moves host memory. connect_devices() adds the one
  // that moves the values of the graph.
  MpiTeam(MpiRanks& ranks, double timeout);
  Communicator& control() { return *control_; }
  // Connects the devices of the ranks. All ranks call this function at the same time, once at the
  // start, and again whenever their devices have been opened anew. `open` is called when nothing of
  // the team uses the old device any more. It is given a communicator of host memory and returns
  // one of the device's memory.
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

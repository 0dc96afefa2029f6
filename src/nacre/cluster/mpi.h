// Ranks that are processes started by MPI: mpirun -n 4 nacre …, or srun. MPI itself is in a plug-in
// (src/nacre/mpi), so programs start without MPI. A program that was started by MPI does this:
//
//   if (launched_by_mpi()) {
//     MpiRanks ranks;
//     try {
//       ranks.run([&](Communicator& own) { … });
//     } catch (const std::exception& error) {
//       if (ranks.tells(error)) std::cerr << error.what() << "\n";
//       ranks.end_all(1);
//     }
//   }
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "nacre/base/log.h"
#include "nacre/cluster/communicator.h"
#include "nacre/cluster/mpi_abi.h"

namespace nacre {

class PacketHub;
class RankRouter;

// Returns whether this process is one of several that mpirun or srun has started, according to the
// environment. The script of a Slurm job does not count; a program that it starts with srun does.
bool launched_by_mpi();

// MpiRanks is the connection of this process to all others. A process has only one, and MPI cannot
// be started again after its end. The thread that makes the object also calls run() or close().
class MpiRanks {
 public:
  // Starts MPI. Throws UserError if the plug-in is missing, or if the launcher belongs to another
  // MPI. `timeout` is in seconds. If other processes do not answer for this long while MPI starts
  // or ends, this process calls last_words() and ends.
  explicit MpiRanks(double timeout = kCommTimeout, LastWords last_words = log_warning);
  // If close() was not called, MPI is left as it is: other ranks may have failed, and the end of
  // MPI would wait for them.
  ~MpiRanks();
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  int rank() const;
  int size() const;
  // local_size() returns the number of ranks on this machine, and local_rank() returns how many of
  // them come before this rank.
  int local_size() const;
  int local_rank() const;

  // Returns a new communicator of all ranks. All ranks call this function equally often. One thread
  // at a time uses the communicator.
  std::unique_ptr<Communicator> connect(double timeout = kCommTimeout);

  // Returns a router that lets this process drive several ranks. `process_of` has the process of
  // each rank, and all processes give the same list.
  std::shared_ptr<RankRouter> route(std::vector<int> process_of);

  // Calls body(communicator). If the body throws on one rank, the others fail with its message.
  // Then run() throws what the body threw on this rank, or RankFailure if another rank failed. If
  // all ranks have returned, ends MPI.
  void run(const std::function<void(Communicator&)>& body, double timeout = kCommTimeout);
  // Waits until all ranks have called close(), and ends MPI. Throws RankFailure.
  void close(double timeout = kCommTimeout);
  // Promises that this process ends within `seconds` after run() or close(). A process that is
  // stopped in this time is killed by the system; without the promise, its launcher waits for it.
  void promise_to_exit(double seconds) { exits_within_ = seconds; }

  // Returns whether this rank is the one that prints an error that run() or close() threw.
  bool tells(const std::exception& error) const;
  // Ends this process and makes the launcher end the others. Must be called after a failure,
  // because the process of a rank that hangs does not end by itself.
  [[noreturn]] void end_all(int code);

 private:
  std::shared_ptr<PacketHub> hub_;
  double exits_within_ = 0;  // seconds of promise_to_exit(); 0 if it was not called
  int teller_ = -1;          // rank that prints the failure that run() or close() has thrown
};

}  // namespace nacre

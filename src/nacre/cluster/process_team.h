// ProcessTeam: the team of a process that MPI has started and that drives several ranks. The thread
// that makes the team is the first rank of the process; the other ranks are threads of the team.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nacre/cluster/rank_team.h"
#include "nacre/cluster/two_levels.h"

namespace nacre {

class ProcessTeam : public RankTeam {
 public:
  // `process_of` has the process of each rank; the ranks of a process have consecutive numbers.
  // `processes` must outlive the team. All processes make their teams at the same time.
  ProcessTeam(MpiRanks& processes, std::vector<int> process_of, double timeout);
  // Waits until the threads have ended. A thread that waits for the first rank fails, because the
  // first rank makes no further call.
  ~ProcessTeam() override;
  ProcessTeam(const ProcessTeam&) = delete;
  ProcessTeam& operator=(const ProcessTeam&) = delete;

  // Returns the ranks of this process, ascending.
  const std::vector<int>& own() const { return of_process_.own; }
  // Returns the communicator of the processes, in which each process is one rank.
  Communicator& processes() { return *processes_; }
  Communicator& control();

  // Connects the devices of the ranks. All processes call this function at the same time, once at
  // the start, and again whenever the devices have been opened anew. No thread may be running then.
  // The arguments are those of connect_two_levels().
  void connect_devices(const std::shared_ptr<RankMemory>& memory, const StageRank& stage);

  // Calls body(calls) for all ranks of the process but the first, each on a thread of its own. If a
  // body throws, all ranks fail with its message.
  using Body = std::function<void(const RankCalls&)>;
  void start(const Body& body);
  // Waits until the threads that start() has started have ended.
  void wait();

  RankCalls calls() override;
  [[noreturn]] void fail() override;

 private:
  struct Rank;

  double timeout_;
  ProcessRanks of_process_;
  std::unique_ptr<Communicator> processes_;
  std::vector<std::unique_ptr<Rank>> ranks_;  // the ranks in the order of own()
};

}  // namespace nacre

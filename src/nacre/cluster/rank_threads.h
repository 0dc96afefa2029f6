// RankThreads: the threads of ranks 1, 2, … of a process whose own thread is rank 0. run_ranks()
// runs all ranks inside one call; with RankThreads, rank 0 is the caller, and makes its calls
// whenever its own code needs them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nacre/cluster/in_process.h"
#include "nacre/cluster/rank_team.h"

namespace nacre {

class RankThreads : public RankTeam {
 public:
  using Body = std::function<void(const RankCalls&)>;

  // Connects `size` ranks twice, once for the memory of their devices and once for host memory, and
  // calls body(calls) for ranks 1 … size − 1, each on a thread of its own. If a body throws, all
  // ranks fail with its message.
  RankThreads(int size, const GroupOptions& data, const Body& body);
  // Waits until the threads have ended. A thread that waits for a call that rank 0 has not made
  // fails.
  ~RankThreads() override;
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  RankCalls calls() override;
  // Does what RankTeam::fail() says. Waits until the threads have ended before it throws.
  [[noreturn]] void fail() override;

 private:
  struct Rank;

  void end();

  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace nacre

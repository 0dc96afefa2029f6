// The threads of ranks 1, 2, … of a process whose own thread is rank 0. run_ranks() runs all ranks
// inside one call; here rank 0 goes on by itself and makes its calls whenever it wants to.
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

  // Connects `size` ranks twice, once for each kind of memory, and calls body(calls) for ranks
  // 1 … size − 1, each on a thread of its own. If a body throws, all ranks fail with its message.
  RankThreads(int size, const GroupOptions& data, const Body& body);
  // Waits for the threads. If rank 0 has not made the last call that they wait for, they fail.
  ~RankThreads() override;
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  RankCalls calls() override;
  // Waits for the threads before it throws.
  [[noreturn]] void fail() override;

 private:
  struct Rank;

  void end();

  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace nacre

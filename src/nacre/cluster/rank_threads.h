// The threads of ranks 1, 2, … of a process whose own thread is rank 0. run_ranks() runs all ranks
// inside one call; here rank 0 goes on by itself and makes its calls whenever it wants to.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nacre/cluster/in_process.h"

namespace nacre {

class RankThreads {
 public:
  // What a rank calls: `data` moves the rows it computes with, `control` is for host memory.
  struct Calls {
    Communicator& data;
    Communicator& control;
  };
  using Body = std::function<void(const Calls&)>;

  // Connects `size` ranks twice, once for each kind of memory, and calls body(calls) for ranks
  // 1 … size − 1, each on a thread of its own. If a body throws, all ranks fail with its message.
  RankThreads(int size, const GroupOptions& data, Body body);
  // Waits for the threads. If rank 0 has not made the last call that they wait for, they fail.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Returns the calls of rank 0.
  Calls calls();
  // Must be called by rank 0 inside a handler of an exception that it threw or caught. Tells the
  // other ranks that the run has failed, waits for them, and throws what the failed rank threw.
  [[noreturn]] void fail();

 private:
  struct Rank;

  void end();

  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace nacre

// Runs the ranks of one process, each on a thread of its own.
#pragma once

#include <functional>
#include <string>

#include "nacre/cluster/in_process.h"

namespace nacre {

struct RunRanksOptions {
  GroupOptions group;
  // run_ranks() calls this function if a rank does not return within stuck_seconds after the
  // failure of another one. The thread of such a rank cannot be ended, so a program prints the
  // message and ends the process. If there is no function, run_ranks() waits on.
  std::function<void(const RankFailure&)> on_stuck;
  double stuck_seconds = 5;
};

// Calls body(communicator) for each of `size` ranks and returns when all have returned. If a rank
// throws, the others fail with its message. Then run_ranks() throws what that rank threw, or
// RankFailure if no rank threw anything else.
void run_ranks(int size, const std::function<void(Communicator&)>& body, const RunRanksOptions& options = {});

}  // namespace nacre

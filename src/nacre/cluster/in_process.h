// The communicator of ranks that are threads of one process. Bytes are copied straight from the
// memory of the sender to that of the receiver, and sums are written straight into the memory of
// every rank. No thread is started: ranks that wait do the copies, whoever comes first.
#pragma once

#include <memory>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/cluster/rank_memory.h"

namespace nacre {

struct GroupOptions {
  double timeout = kCommTimeout;       // seconds; 0 or less: ranks wait for ever
  std::shared_ptr<RankMemory> memory;  // null: host memory
};

// Returns the communicators of `size` ranks.
std::vector<std::unique_ptr<Communicator>> make_group(int size, const GroupOptions& options = {});

}  // namespace nacre

// The communicator of ranks that are threads of one process. Bytes are copied straight from the
// memory of the sender to that of the receiver, and sums are written straight into the memory of
// every rank. No thread is started: ranks that wait do the copies, whoever comes first.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/cluster/rank_memory.h"

namespace nacre {

struct GroupOptions {
  double timeout = kCommTimeout;       // seconds; 0 or less: ranks wait for ever
  std::shared_ptr<RankMemory> memory;  // null: host memory

  // `members` has the ranks that belong to the group, ascending, if other ranks are in other
  // processes (two_levels.h); it is empty if all ranks belong to the group. A group with members
  // exchanges rows only.
  std::vector<int> members = {};
  // The group calls this when `rank` begins to wait for `peer`, and with peer -1 when it goes on.
  // The function must not call the group.
  std::function<void(int rank, int peer)> waits = nullptr;
  // Returns whether a rank for which others wait is itself waiting outside the group.
  std::function<bool(int rank)> is_excused = nullptr;
};

// Returns the communicators of `size` ranks, or of the members among them.
std::vector<std::unique_ptr<Communicator>> make_group(int size, const GroupOptions& options = {});

}  // namespace nacre

// Makes the communicators of ranks of which some are threads of one process and others are in other
// processes. Rows for ranks of the same process are copied straight from memory to memory, or from
// GPU to GPU; all others travel in packets.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/cluster/rank_memory.h"

namespace nacre {

class PacketHub;

// Describes the ranks of this process among all ranks.
struct ProcessRanks {
  std::vector<int> process_of;                   // the process of each rank of all processes
  std::vector<int> own;                          // the ranks of this process, ascending
  std::vector<std::shared_ptr<PacketHub>> hubs;  // the hub of each rank in `own` (rank_router.h)
};

// StageRank is a function that takes the communicator of a rank that moves host memory, and returns
// one that moves memory of the rank's device.
using StageRank = std::function<std::unique_ptr<Communicator>(int rank, std::unique_ptr<Communicator> host)>;

// Returns the communicators of the ranks of this process. All processes call this function equally
// often. `memory` is the memory of all ranks, of which this process moves that of its own ranks;
// null means host memory. The hubs must outlive the communicators.
//
// Sums and texts travel in packets. Rows that are added (ExchangeRequest::adds) travel in packets
// too, because they are added in the order of all ranks. All ranks agree on one failure, wherever
// it is noticed.
std::vector<std::unique_ptr<Communicator>> connect_two_levels(const ProcessRanks& ranks,
                                                              const std::shared_ptr<RankMemory>& memory,
                                                              const StageRank& stage, double timeout);

}  // namespace nacre

// What a rank needs to run a distributed plan: the blocks of its part of a graph, connected to the
// other ranks by a communicator.
#pragma once

#include <memory>

#include "nacre/cluster/communicator.h"
#include "nacre/device/device.h"
#include "nacre/kernel/rank_links.h"
#include "nacre/partition/local_graph.h"

namespace nacre {

// Returns the links of a rank (kernel/rank_links.h). `local` is the block of part
// communicator.rank() of `whole`. All ranks must call this at the same time, because they tell each
// other their sizes. The communicator must outlive the links. `device` is the GPU that the values
// of the rank lie on; null means host memory. With GPUs, the group of the communicator must have
// been made with make_rank_memory() (engine/rank_memory.h).
std::shared_ptr<RankLinks> make_rank_links(const Graph& whole, std::shared_ptr<const LocalGraph> local,
                                           Communicator& communicator, const std::shared_ptr<Device>& device = nullptr);

}  // namespace nacre

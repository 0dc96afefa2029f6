// This header declares the memory of ranks that are devices of one process (cluster/rank_memory.h):
// GPUs, virtual GPUs, and the host.
//
// The thread of a rank never waits for a GPU. A GPU rank that sends notes the point of its stream
// from which on its rows may be read. The receiver's second stream waits for this point and then
// reads the rows where they lie. The streams of both ranks wait for the end of that work before
// they go on after the exchange; what they have queued until then runs beside it. Sums over all
// ranks are added up on the second stream, too. Where a receiver cannot read the memory of a sender
// (one of the two is the host, or the GPUs have no access to each other), the sender copies its
// rows to page-locked memory first.
#pragma once

#include <memory>
#include <vector>

#include "nacre/cluster/rank_memory.h"
#include "nacre/device/device.h"

namespace nacre {

class GpuCompiler;

// Returns the memory of ranks for GroupOptions::memory (cluster/in_process.h). There is one device
// for each rank; null means that the values of the rank lie in host memory. Ranks must not share a
// device object, but several devices may be of the same GPU.
std::shared_ptr<RankMemory> make_rank_memory(const std::vector<std::shared_ptr<Device>>& devices);
// Returns the same memory, but with the given compilers of the ranks instead of new ones. A null
// compiler means that the values of the rank lie in host memory.
std::shared_ptr<RankMemory> make_rank_memory(std::vector<std::shared_ptr<GpuCompiler>> compilers);

}  // namespace nacre

// This header declares what a rank needs to run a distributed plan: the blocks of its part of a
// graph, connected to the other ranks by a communicator.
#pragma once

#include <memory>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/kernel/rank_links.h"
#include "nacre/partition/local_graph.h"
#include "nacre/plan/plan.h"

namespace nacre {

class GpuCompiler;

// Describes a graph that several ranks share.
struct SharedGraph {
  const Graph& graph;
  const Partition& partition;  // the part of each rank; it must outlive the links
  // The share of each rank in the columns, if ranks aggregate in columns. If empty, all shares are
  // equal.
  std::vector<double> shares = {};
  // The block of the rank's part in the graph with all edges turned around; null if ranks do not
  // aggregate at the owners of sources.
  std::shared_ptr<const LocalGraph> reversed = nullptr;
};

// Returns the links of a rank (kernel/rank_links.h). `local` is the block of part
// communicator.rank() of the graph. All ranks must call this at the same time, because they tell
// each other their sizes. The communicator must outlive the links. `compiler` is that of the GPU
// that the values of the rank lie on; null means host memory. With GPUs, the group of the
// communicator must have been made with make_rank_memory() (engine/rank_memory.h).
std::shared_ptr<RankLinks> make_rank_links(const SharedGraph& shared, std::shared_ptr<const LocalGraph> local,
                                           Communicator& communicator,
                                           const std::shared_ptr<GpuCompiler>& compiler = nullptr);

// Says how many rows all ranks have together.
struct TotalRows {
  int64_t vertices = 0, edges = 0, pairs_src = 0, pairs_dst = 0;
};
// Returns links for making plans and planning memory without other ranks. A call that would have to
// wait for another rank fails.
std::shared_ptr<RankLinks> make_planning_links(const LocalGraph& local, const TotalRows& totals);

}  // namespace nacre

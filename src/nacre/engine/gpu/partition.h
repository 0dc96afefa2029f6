// GpuPartitioner: makes gTasks on the device. They are equal to those of the host
// (gtask/partition.h), bit for bit.
//
// The edges are sorted by as many keys at once as fit into a word. Then each edge gets a bound: the
// first later edge that a gTask which begins at this edge cannot have. If equal values of a
// restricted attribute are neighbours in this order, the bound comes from counting runs of equal
// values; otherwise from a window that slides over the places where values occurred last. Following
// the bounds from the first edge on, twice as far in each round, marks the edges at which gTasks
// begin.
#pragma once

#include <functional>
#include <memory>

#include "nacre/engine/gpu/context.h"
#include "nacre/gtask/pattern.h"

namespace nacre {

class PartitionWork;

class GpuPartitioner {
 public:
  explicit GpuPartitioner(std::shared_ptr<GpuCompiler> compiler);
  ~GpuPartitioner();
  GpuPartitioner(const GpuPartitioner&) = delete;
  GpuPartitioner& operator=(const GpuPartitioner&) = delete;

  GTasks partition(const Graph& graph, const PartitionTable& table);
  PatternReport find_patterns(const GTasks& tasks);

 private:
  struct Columns;
  const Columns& columns_of(const Graph& graph);

  std::shared_ptr<GpuCompiler> compiler_;
  std::unique_ptr<PartitionWork> work_;
  // The edges of the graph of the last call in device memory, in the order of the graph.
  std::unique_ptr<Columns> graph_;
  // The edges in the order of the gTasks of the last call; null if that is the order of the graph.
  std::unique_ptr<Columns> last_;
  const void* last_of_ = nullptr;  // address of the host array of the edges in last_
};

// Returns a function for GraphViews that makes gTasks on the device. Whether it is used is a
// decision of the plan (plan/variants/tasks.h).
std::function<GTasks(const Graph&, const PartitionTable&)> partition_on(std::shared_ptr<GpuCompiler> compiler);

}  // namespace nacre

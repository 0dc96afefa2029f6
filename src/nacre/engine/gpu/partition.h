// gTasks made on the device: the same as the host's (gtask/partition.h), bit for bit.
//
// Edges are sorted by as many keys at once as fit a word. Then for every edge the first one is found that a gTask begun
// there could not have: by counting runs where a restricted attribute lies in runs, otherwise by sliding a window over
// the places where values were last met. Following these from the first edge on, twice as far in each round, marks the
// edges that begin gTasks.
#pragma once

#include <functional>
#include <memory>

#include "nacre/engine/gpu/context.h"
#include "nacre/gtask/pattern.h"

namespace nacre {

class PartitionWork;

class GpuPartitioner {
 public:
  explicit GpuPartitioner(std::shared_ptr<GpuLoader> loader);
  ~GpuPartitioner();
  GpuPartitioner(const GpuPartitioner&) = delete;
  GpuPartitioner& operator=(const GpuPartitioner&) = delete;

  // Whether the device has memory for it.
  bool fits(const Graph& graph) const;
  GTasks partition(const Graph& graph, const PartitionTable& table);
  PatternReport find_patterns(const GTasks& tasks);

 private:
  struct Columns;
  const Columns& columns_of(const Graph& graph);

  std::shared_ptr<GpuLoader> loader_;
  std::unique_ptr<PartitionWork> work_;
  std::unique_ptr<Columns> graph_;  // the edges of the graph last asked about, in its own order, in device memory
  std::unique_ptr<Columns> last_;   // those of the gTasks last made, in theirs; null: the graph's own
  const void* last_of_ = nullptr;   // the host's array that belongs to them
};

// For GraphViews: the device where the graph is large enough to be worth it and fits, otherwise the host.
std::function<GTasks(const Graph&, const PartitionTable&, SortOrders*)> partition_on(std::shared_ptr<GpuLoader> loader);

}  // namespace nacre

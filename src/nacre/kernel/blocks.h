// The graphs behind the spaces of a DFG at run time: one Graph for each layer. In full-graph
// training every layer is the same graph.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"
#include "nacre/graph/graph.h"

namespace nacre {

class Blocks {
 public:
  static Blocks full(const Graph& graph, int layers) { return Blocks(std::vector<Graph>(layers, graph)); }
  explicit Blocks(std::vector<Graph> layers) : layers_(std::move(layers)) {}

  const Graph& layer(int l) const { return layers_[l]; }
  int num_layers() const { return static_cast<int>(layers_.size()); }
  int64_t rows(Space space) const;

 private:
  std::vector<Graph> layers_;  // the graphs share their arrays, so copies are cheap
};

// The numbers that the random draws of a training step depend on.
struct StepContext {
  uint64_t seed = 0;
  uint64_t step = 0;
};

}  // namespace nacre

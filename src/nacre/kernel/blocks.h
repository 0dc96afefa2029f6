// The graphs behind the spaces of a DFG at run time: one Graph for each layer. In full-graph
// training every layer is the same graph.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"
#include "nacre/graph/graph.h"
#include "nacre/kernel/rank_links.h"

namespace nacre {

// The numbers that the rows of a space have in the whole graph. They are the rows' own numbers,
// unless several ranks share the graph.
struct RowIds {
  const uint32_t* ids = nullptr;  // null: row r is number r
  int64_t operator[](int64_t r) const { return ids == nullptr ? r : int64_t{ids[r]}; }
};

class Blocks {
 public:
  static Blocks full(const Graph& graph, int layers) { return Blocks(std::vector<Graph>(layers, graph)); }
  explicit Blocks(std::vector<Graph> layers) : layers_(std::move(layers)) {}

  // Returns the blocks of one of several ranks. The destinations of `local` are the rank's own
  // vertices; its sources are these and then the halo.
  static Blocks of_rank(const Graph& local, int layers, std::shared_ptr<RankLinks> links);

  const Graph& layer(int l) const { return layers_[l]; }
  int num_layers() const { return static_cast<int>(layers_.size()); }
  int64_t rows(Space space) const;
  // Returns the number of rows on all ranks together.
  int64_t total_rows(Space space) const { return links_ ? links_->total_rows(space) : rows(space); }
  // Returns the connection to the other ranks; null if there are none.
  RankLinks* links() const { return links_.get(); }
  RowIds ids(Space space) const;

 private:
  std::vector<Graph> layers_;  // the graphs share their arrays, so copies are cheap
  std::shared_ptr<RankLinks> links_;
};

// The numbers that the random draws of a training step depend on.
struct StepContext {
  uint64_t seed = 0;
  uint64_t step = 0;
};

}  // namespace nacre

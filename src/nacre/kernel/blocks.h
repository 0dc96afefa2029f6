// The graphs behind the spaces of a DFG at run time: one Graph for each layer. In full-graph
// training every layer is the same graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"
#include "nacre/dfg/distribute.h"
#include "nacre/graph/graph.h"
#include "nacre/kernel/rank_links.h"

namespace nacre {

// The numbers that the rows of a space have in the whole graph. They are the rows' own numbers,
// unless several ranks share the graph.
struct RowIds {
  const uint32_t* ids = nullptr;  // null: row r is number r
  int64_t operator[](int64_t r) const { return ids == nullptr ? r : int64_t{ids[r]}; }
};

// The graphs that one of several ranks holds.
struct RankGraphs {
  // The edges that end at the rank's own vertices, which are the destinations. The sources are its
  // own vertices and then the halo.
  Graph local;
  // The graph of all ranks. A rank that never aggregates in columns can do without it.
  std::optional<Graph> whole = std::nullopt;
  // The edges that start at the rank's own vertices, turned around. If ranks never aggregate at the
  // owners of sources, there is none.
  std::optional<Graph> reversed = std::nullopt;
};

// The vertices of v0 by their kinds: for each kind, the rows of its vertices in v0, in ascending
// order. Each row belongs to one kind.
using KindRows = std::vector<Array<NodeId>>;

class Blocks {
 public:
  static Blocks full(const Graph& graph, int layers) { return Blocks(std::vector<Graph>(layers, graph)); }
  explicit Blocks(std::vector<Graph> layers, std::shared_ptr<const KindRows> kinds = nullptr)
      : layers_(std::move(layers)), kinds_(std::move(kinds)) {}

  // Returns the blocks of one of several ranks: layers of its own edges, and behind them one layer
  // of each other graph that it has (views()).
  static Blocks of_rank(const RankGraphs& graphs, int layers, std::shared_ptr<RankLinks> links);

  const Graph& layer(int l) const { return layers_[l]; }
  int num_layers() const { return static_cast<int>(layers_.size()); }
  int64_t rows(Space space) const;
  // Returns the number of rows on all ranks together.
  int64_t total_rows(Space space) const { return links_ && !is_whole(space) ? links_->total_rows(space) : rows(space); }
  // Returns which layers of these blocks are graphs other than the rank's own edges.
  RankViews views() const;
  // Returns whether a space belongs to the layer of reversed edges.
  bool is_reversed(Space space) const { return reversed_ >= 0 && space.layer >= reversed_; }
  // Returns the connection to the other ranks; null if there are none.
  RankLinks* links() const { return links_.get(); }
  RowIds ids(Space space) const;
  // Returns the rows of v0 that are in a space of vertices of one kind.
  const Array<NodeId>& kind_rows(Space space) const;

 private:
  // Returns whether a space is in the layer of the whole graph.
  bool is_whole(Space space) const {
    return whole_ >= 0 && (space.layer == whole_ || (space.layer == whole_ + 1 && space.on_vertices()));
  }

  std::vector<Graph> layers_;  // the graphs share their arrays, so copies are cheap
  std::shared_ptr<RankLinks> links_;
  std::shared_ptr<const KindRows> kinds_;  // null if no space of a kind is used
  // Layers of the whole graph and of reversed edges; -1 if there is none.
  int whole_ = -1, reversed_ = -1;
};

// The numbers that the random draws of a training step depend on.
struct StepContext {
  uint64_t seed = 0;
  uint64_t step = 0;
};

}  // namespace nacre

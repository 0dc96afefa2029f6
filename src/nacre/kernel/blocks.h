// The graphs behind the spaces of a DFG at run time: one Graph for each layer. In full-graph
// training every layer is the same graph. Behind these layers there may be layers of other graphs,
// which rewritten DFGs use: those of ranks (RankViews) and the halves of the edges (CoverLayers).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"
#include "nacre/dfg/distribute.h"
#include "nacre/graph/edge_cover.h"
#include "nacre/graph/graph.h"
#include "nacre/kernel/rank_links.h"

namespace nacre {

// The numbers that the rows of a space have in the whole graph. A row has the same number in its
// space and in the whole graph, unless several ranks share the graph.
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

// The layers of the halves into which a plan may divide the edges of the whole graph (EdgeCover).
// -1 means that the blocks cannot be divided. The vertices of these layers are those of the graph.
struct CoverLayers {
  int at_dst = -1;  // the layer whose edges belong to the pairs of their destinations
  int at_src = -1;  // the layer of all other edges, which belong to the pairs of their sources
  bool exist() const { return at_dst >= 0; }
  // Returns whether a space of edges or pairs belongs to one of the halves.
  bool holds(Space space) const { return exist() && space.layer >= at_dst; }
};

// The vertices of v0 by their kinds: element k lists the rows that the vertices of kind k have in
// v0, in ascending order. Each row belongs to one kind.
using KindRows = std::vector<Array<NodeId>>;

class Blocks {
 public:
  // Returns the same graph in all layers. If it has edge types, its edges can be divided.
  static Blocks full(const Graph& graph, int layers);
  explicit Blocks(std::vector<Graph> layers, std::shared_ptr<const KindRows> kinds = nullptr)
      : layers_(std::move(layers)), kinds_(std::move(kinds)) {}

  // Returns the blocks of one of several ranks: layers of its own edges, and behind them one layer
  // of each other graph that it has (views()).
  static Blocks of_rank(const RankGraphs& graphs, int layers, std::shared_ptr<RankLinks> links);

  const Graph& layer(int l) const { return l < num_layers() ? layers_[l] : half(l); }
  int num_layers() const { return static_cast<int>(layers_.size()); }
  int64_t rows(Space space) const;
  // Returns the layers of the halves of the edges. The halves are made when one of these layers is
  // first asked for, and again after drop_cover().
  CoverLayers cover_layers() const;
  // Returns for every edge of a half its number in the whole graph.
  const Array<EdgeId>& whole_edges(int l) const;
  // Returns the bytes of the halves; 0 if they have not been made.
  int64_t cover_bytes() const;
  // Frees the halves, also for all copies of these blocks. Whoever calls this makes sure that
  // nobody refers to the halves or to their arrays any more, such as executors of plans that use
  // them.
  void drop_cover() const;
  // Returns whether a value of the DFG is in a space of the halves.
  bool uses_cover(const Dfg& dfg) const;
  // Returns whether these blocks have the layers of all spaces of a DFG.
  bool fit(const Dfg& dfg) const;
  // Returns one more than the number of the last layer that a DFG may name.
  int end_layer() const { return cover_layers().exist() ? cover_layers().at_src + 2 : num_layers(); }
  // Returns the number of rows on all ranks together.
  int64_t total_rows(Space space) const { return links_ && !is_whole(space) ? links_->total_rows(space) : rows(space); }
  // Returns the numbers of the layers that hold the graph of all ranks and the rank's reversed
  // edges (-1 for a layer that does not exist), with the rank's number and the shares. If there
  // are no other ranks, both numbers of layers are -1.
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

  // The halves of the edges of a whole graph, made on use and shared by all copies.
  struct LazyCover;
  const Graph& half(int l) const;

  std::shared_ptr<LazyCover> cover_;  // null if the edges cannot be divided
  std::vector<Graph> layers_;         // the graphs share their arrays, so copies are cheap
  std::shared_ptr<RankLinks> links_;
  std::shared_ptr<const KindRows> kinds_;  // null if no space of a kind is used
  // The numbers of the layers of the whole graph and of reversed edges; -1 if there is none.
  int whole_ = -1, reversed_ = -1;
};

// The numbers that the random draws of a training step depend on.
struct StepContext {
  uint64_t seed = 0;
  uint64_t step = 0;
};

}  // namespace nacre

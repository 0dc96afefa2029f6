#include "nacre/kernel/blocks.h"

#include <algorithm>
#include <mutex>
#include <optional>

namespace nacre {

struct Blocks::LazyCover {
  explicit LazyCover(Graph whole) : graph_(std::move(whole)) {}
  const EdgeCover& get() {
    const std::lock_guard lock(mutex_);
    if (!cover_) cover_ = cover_edges(graph_);
    return *cover_;
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    cover_.reset();
  }
  int64_t bytes() {
    const std::lock_guard lock(mutex_);
    return cover_ ? cover_->bytes() : 0;
  }

 private:
  Graph graph_;
  std::mutex mutex_;  // guards cover_; other threads wait while one makes the halves
  std::optional<EdgeCover> cover_;
};

Blocks Blocks::full(const Graph& graph, int layers) {
  Blocks blocks(std::vector<Graph>(layers, graph));
  if (graph.typed() && graph.num_src() == graph.num_dst() && layers > 0)
    blocks.cover_ = std::make_shared<LazyCover>(graph);
  return blocks;
}

// The destinations of a layer l are v(l+1), so the numbers of the layers have a gap in front of
// each half.
CoverLayers Blocks::cover_layers() const {
  return cover_ ? CoverLayers{num_layers() + 1, num_layers() + 3} : CoverLayers{};
}

const Graph& Blocks::half(int l) const {
  const CoverLayers layers = cover_layers();
  NACRE_CHECK(layers.exist() && (l == layers.at_dst || l == layers.at_src),
              "the blocks have no layer " + std::to_string(l));
  return l == layers.at_dst ? cover_->get().at_dst : cover_->get().at_src;
}

const Array<EdgeId>& Blocks::whole_edges(int l) const {
  half(l);
  return l == cover_layers().at_dst ? cover_->get().dst_edges : cover_->get().src_edges;
}

bool Blocks::fit(const Dfg& dfg) const {
  const CoverLayers cover = cover_layers();
  return std::all_of(dfg.nodes().begin(), dfg.nodes().end(), [&](const Node& node) {
    const Space space = node.type.space;
    const int l = space.layer;
    if (space.on_vertices()) return l <= num_layers() || (cover.exist() && l >= cover.at_dst && l < end_layer());
    return !space.is_typed() || l < num_layers() || (cover.exist() && (l == cover.at_dst || l == cover.at_src));
  });
}

int64_t Blocks::cover_bytes() const { return cover_ ? cover_->bytes() : 0; }

void Blocks::drop_cover() const {
  if (cover_) cover_->drop();
}

bool Blocks::uses_cover(const Dfg& dfg) const {
  const CoverLayers cover = cover_layers();
  return std::any_of(dfg.nodes().begin(), dfg.nodes().end(),
                     [&](const Node& node) { return cover.holds(node.type.space); });
}

Blocks Blocks::of_rank(const RankGraphs& graphs, int layers, std::shared_ptr<RankLinks> links) {
  // Each graph takes one layer number more than it has layers, because the destinations of its last
  // layer l are the space v(l+1), which must not be the first space of the next graph.
  Blocks blocks(std::vector<Graph>(layers + 1, graphs.local));
  if (graphs.whole) {
    blocks.whole_ = blocks.num_layers();
    blocks.layers_.insert(blocks.layers_.end(), 2, *graphs.whole);
  }
  if (graphs.reversed) {
    blocks.reversed_ = blocks.num_layers();
    blocks.layers_.insert(blocks.layers_.end(), 2, *graphs.reversed);
  }
  blocks.links_ = std::move(links);
  return blocks;
}

RankViews Blocks::views() const {
  return links_ ? RankViews{whole_, reversed_, links_->rank(), links_->shares()} : RankViews{};
}

RowIds Blocks::ids(Space space) const {
  if (!links_ || is_whole(space)) return {};
  if (space.on_vertices()) return {links_->vertex_ids().data()};
  return space.kind == SpaceKind::edge ? RowIds{links_->edge_ids().data()} : RowIds{};
}

const Array<NodeId>& Blocks::kind_rows(Space space) const {
  NACRE_CHECK(kinds_ && space.kind == SpaceKind::kind && space.count < static_cast<int64_t>(kinds_->size()),
              "the blocks do not know the vertices of " + space_text(space));
  return (*kinds_)[static_cast<size_t>(space.count)];
}

int64_t Blocks::rows(Space space) const {
  switch (space.kind) {
    case SpaceKind::param:
      return 1;
    case SpaceKind::type:
      return layers_.empty() ? 1 : layers_[0].num_edge_types();
    case SpaceKind::edge:
      return layer(space.layer).num_edges();
    case SpaceKind::pair_src:
      return layer(space.layer).count_pairs(End::src);
    case SpaceKind::pair_dst:
      return layer(space.layer).count_pairs(End::dst);
    case SpaceKind::rows:
      return space.count;
    case SpaceKind::kind:
      return kind_rows(space).size();
    case SpaceKind::halo:
      return layer(space.layer).num_src();
    case SpaceKind::vertex:
      if (links_) return layer(is_whole(space) ? whole_ : 0).num_dst();
      // The last vertex space is the destinations of the last block; a model without blocks (an
      // MLP) runs on layer 0.
      return space.layer < num_layers() ? layer(space.layer).num_src() : layer(num_layers() - 1).num_dst();
  }
  return 0;
}

}  // namespace nacre

#include "nacre/kernel/blocks.h"

namespace nacre {

Blocks Blocks::of_rank(const RankGraphs& graphs, int layers, std::shared_ptr<RankLinks> links) {
  // A layer is left out behind each graph, because the destinations of a layer l are v(l+1).
  Blocks blocks = full(graphs.local, layers + 1);
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

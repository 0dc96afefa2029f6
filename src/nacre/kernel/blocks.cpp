#include "nacre/kernel/blocks.h"

namespace nacre {

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
    case SpaceKind::vertex:
      // The last vertex space is the destinations of the last block; a model without blocks (an
      // MLP) runs on layer 0.
      return space.layer < num_layers() ? layer(space.layer).num_src() : layer(num_layers() - 1).num_dst();
  }
  return 0;
}

}  // namespace nacre

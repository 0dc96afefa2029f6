// Changes that the original loaders of some layouts make to the edges after reading them.
#pragma once

#include "nacre/graph/graph.h"

namespace nacre {

struct Cleaning {
  bool drop_loops = false;
  // Whether only the first of the edges with equal source, destination and type is kept.
  bool merge_duplicates = false;
};
Graph cleaned(const Graph& graph, const Cleaning& cleaning);

}  // namespace nacre

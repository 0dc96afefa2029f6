// What some layouts' own loaders do to the edges after reading them.
#pragma once

#include "nacre/graph/graph.h"

namespace nacre {

struct Cleaning {
  bool drop_loops = false;
  bool merge_duplicates = false;  // same source, destination and type: the first one's weight is kept
};
Graph cleaned(const Graph& graph, const Cleaning& cleaning);

}  // namespace nacre

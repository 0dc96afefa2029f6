// Chooses the vertices that a picture of a partition shows.
#pragma once

#include "nacre/gtask/partition.h"

namespace nacre::cli {

// Returns the gTasks as seen from `side` vertices around the vertex with most edges, renumbered
// from 0 in the order of their ids. All other vertices get numbers outside of any picture.
// Consecutive ids would not do, because large graphs have hardly any edges among them.
GTasks among_neighbours(const GTasks& tasks, int64_t side);

}  // namespace nacre::cli

// Which vertices a picture of a partition shows.
#pragma once

#include "nacre/gtask/partition.h"

namespace nacre::cli {

// The gTasks as seen from `side` vertices around the one with most edges, renumbered from 0 in the
// order of their ids; all others lie beyond any picture. Large graphs have next to no edges among
// neighbouring ids.
GTasks among_neighbours(const GTasks& tasks, int64_t side);

}  // namespace nacre::cli

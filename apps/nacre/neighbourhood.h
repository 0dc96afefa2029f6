// Chooses the vertices that a picture of a partition shows.
#pragma once

#include "nacre/gtask/partition.h"

namespace nacre::cli {

// Returns the gTasks with other numbers of vertices: `side` vertices around the one with most edges
// get the numbers from 0 in the order of their ids, and all others get numbers outside of any
// picture. A picture does not show the first `side` ids, because large graphs have hardly any edges
// among them.
GTasks among_neighbours(const GTasks& tasks, int64_t side);

}  // namespace nacre::cli

// Random DFGs: operations drawn at random on random operands, over two blocks, ending in a scalar loss. Only operations
// with a continuous gradient, so that f32 and double do not part at a kink.
#pragma once

#include "nacre/dfg/dfg.h"
#include "support/rng.h"

namespace nacre::test {

// Forward pass with the output "loss" and, for some values, outputs of their own. `nodes` operations are attempted.
Dfg random_dfg(uint64_t seed, int nodes);

}  // namespace nacre::test

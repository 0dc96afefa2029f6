// Makes random DFGs over two blocks: random operations on random operands, ending in a scalar loss.
// Only operations with a continuous gradient are drawn, so that f32 and double give nearly equal
// results.
#pragma once

#include "nacre/dfg/dfg.h"
#include "support/rng.h"

namespace nacre::test {

// Returns a forward pass with the output "loss"; some other values are outputs, too. Tries to add
// `nodes` operations.
Dfg random_dfg(uint64_t seed, int nodes);

}  // namespace nacre::test

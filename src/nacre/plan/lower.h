// Groups DFG nodes into kernels and picks an implementation for each, from an ordered list, fastest first; the
// reference implementation of the node is last, so there is always an answer.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Fills kernels, stored and alias of a plan whose dfg and options are set.
void lower(Plan& plan, const Blocks& blocks);

}  // namespace nacre

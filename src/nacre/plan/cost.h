// The physical floor of a kernel: the fewest bytes that it must move and the operations that it
// must do.
#pragma once

#include "nacre/plan/analysis.h"
#include "nacre/plan/plan.h"

namespace nacre {

// Sets floor_bytes and flops. Every stored operand counts once, however often its rows are
// gathered; every result counts once; and the index arrays of the graph count once if edges are
// walked.
void estimate_cost(Kernel& kernel, const Plan& plan, const Analysis& an);

// Returns the bytes of the orders in which the kernels of a step walk the edges. These lie in
// memory all the time: the vertices at the other end, the pairs they belong to, and constant
// weights that lie in another order.
int64_t order_bytes(const Plan& plan, const Blocks& blocks);

// Returns the bytes of the values that are computed once and stay in memory.
int64_t once_bytes(const Plan& plan, const Blocks& blocks);

}  // namespace nacre

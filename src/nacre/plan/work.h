// Counts the work of a kernel of a plan from the graph and the shapes. It is the input of every
// cost model, and `nacre explain` reports it.
#pragma once

#include "nacre/cost/nominal.h"
#include "nacre/plan/plan.h"

namespace nacre {

// Gathered rows of a table that is no larger than `cache_bytes` count as near.
Work kernel_work(const Kernel& kernel, const Plan& plan, const Blocks& blocks, int64_t cache_bytes);

}  // namespace nacre

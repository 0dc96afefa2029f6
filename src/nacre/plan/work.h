// What a kernel of a plan has to do, counted from the graph and the shapes: the input of every cost model, and what
// `nacre explain` reports.
#pragma once

#include "nacre/cost/nominal.h"
#include "nacre/plan/plan.h"

namespace nacre {

// `cache_bytes`: gathered rows of a table no larger than this are near.
Work kernel_work(const Kernel& kernel, const Plan& plan, const Blocks& blocks, int64_t cache_bytes);

}  // namespace nacre

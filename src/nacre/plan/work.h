// Counts the work of a kernel of a plan from the graph and the shapes. It is the input of every
// cost model, and `nacre explain` reports it.
#pragma once

#include "nacre/base/function_ref.h"
#include "nacre/cost/nominal.h"
#include "nacre/plan/plan.h"

namespace nacre {

// A function that returns how many rows a space has on the device, or on the rank, where the work
// is done. The graph itself need not be there.
using RowsOf = FunctionRef<double(Space)>;

// Returns the counted work of a kernel. Of the gathered rows of a value, the share that
// `cache_bytes` have room for counts as near.
Work kernel_work(const Kernel& kernel, const Plan& plan, const Blocks& blocks, int64_t cache_bytes);
Work kernel_work(const Kernel& kernel, const Plan& plan, RowsOf rows, int64_t cache_bytes);

}  // namespace nacre

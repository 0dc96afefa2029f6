// What a kernel of a plan has to do, counted from the graph and the shapes: the input of every cost model, and what
// `nacre explain` reports.
#pragma once

#include "nacre/cost/model.h"
#include "nacre/plan/plan.h"

namespace nacre {

// `cache_bytes`: gathered rows of a table no larger than this are near.
Work kernel_work(const Kernel& kernel, const Plan& plan, const Blocks& blocks, int64_t cache_bytes);

// Coefficients of an imaginary, ordinary machine: for choices that must not depend on the machine they are made on, and
// where no profile has been measured.
const CostModel& nominal_model();
inline constexpr int64_t kNominalCache = 16 << 20;
// The same for an imaginary, ordinary data-centre GPU.
const CostModel& nominal_gpu_model();
inline constexpr int64_t kNominalGpuCache = 40 << 20;

}  // namespace nacre

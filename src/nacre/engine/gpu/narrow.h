// Which values of a plan a GPU keeps as bf16: half the bytes to gather, and operands that tensor cores take as they
// are. Sums and what happens in registers stay f32, as do weights, gradients of weights and results.
#pragma once

#include <functional>

#include "nacre/plan/plan.h"

namespace nacre {

// Marks (Plan::narrow and the programs' operands) the wide values of vertices that only kernels for which `reads_bf16`
// holds read or write.
void narrow_values(Plan& plan, const std::function<bool(const Kernel&)>& reads_bf16);

}  // namespace nacre

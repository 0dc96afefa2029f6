// Chooses the values of a plan that a GPU stores as bf16. They are half as many bytes to gather,
// and tensor cores take them as they are. Sums, registers, weights, gradients of weights and
// results stay f32.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Marks the wide values of vertices that are read and written only by kernels that take bf16. The
// marks are in Plan::narrow and in the operands of the programs.
void narrow_values(Plan& plan);

}  // namespace nacre

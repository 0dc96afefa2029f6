// Chooses the values of a plan that a GPU stores as bf16. They are half as many bytes to gather,
// and tensor cores take them as they are. Sums, registers, weights, gradients of weights and
// results stay f32.
#pragma once

#include <string>

#include "nacre/plan/plan.h"

namespace nacre {

// Marks the values of vertices that have at least 16 numbers per row and that are read and written
// only by kernels that take bf16. The marks are in Plan::narrow and in the operands of the
// programs.
void narrow_values(Plan& plan);

// Returns whether a rank stores the rows of a communication kernel, operand and result, as bf16.
bool moves_bf16(const Plan& plan, const Kernel& kernel);
// Returns the bytes of an element as this rank stores it and, where all ranks store alike, sends
// it.
double stored_bytes(const Plan& plan, const Kernel& kernel);

}  // namespace nacre

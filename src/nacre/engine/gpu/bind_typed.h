// This header declares binders of the typed family. Each of them adds the steps of a kernel to a
// list.
#pragma once

#include "nacre/engine/gpu/gpu_pairs.h"

namespace nacre {

void add_typed_reduce(const GpuKernel& k, StepList& steps);
void add_typed_weight_grad(const GpuKernel& k, StepList& steps);
void add_typed_rows(const GpuKernel& k, StepList& steps);
void add_typed_rows_grad(const GpuKernel& k, StepList& steps);

}  // namespace nacre

// Binds a matrix product and its tail as one kernel (kernel/cuda/row_product.h), if the library
// would need further passes over memory for the tail.
#pragma once

#include "nacre/engine/gpu/step_list.h"
#include "nacre/plan/variants/products.h"

namespace nacre {

// Adds the steps of the variant ProductWay::own_kernel.
void add_own_product(const GpuKernel& g, const ProductFacts& facts, StepList& steps);

}  // namespace nacre

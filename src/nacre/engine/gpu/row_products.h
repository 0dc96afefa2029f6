// Binds a matrix product and its tail as one kernel (kernel/cuda/row_product.h), if the library
// would need further passes over memory for the tail.
#pragma once

#include <optional>

#include "nacre/engine/gpu/step_list.h"

namespace nacre {

// Returns the number of rows from which on these kernels are faster than the library; fewer rows do
// not fill the device. Returns 0 if the device has no such kernels, or none at the chosen
// precision.
int64_t rows_of_whole_products(GpuContext& context);

// Returns the product if it is to be bound in this way. Returns nothing if the library can do the
// whole tail of a wide product itself, or if the kernel does not fit.
std::optional<SummedProducts> whole_product(const GpuKernel& g);
void add_whole_product(const GpuKernel& g, const SummedProducts& product, StepList& steps);

}  // namespace nacre

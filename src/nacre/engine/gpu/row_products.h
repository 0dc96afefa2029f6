// A product and its tail as one kernel (kernel/cuda/row_product.h), where the library would need passes over memory for
// them.
#pragma once

#include <optional>

#include "nacre/engine/gpu/step_list.h"

namespace nacre {

// Rows from which on they are faster than the library's: fewer do not fill the device. 0: it has no such kernels, or
// not at the precision asked for.
int64_t rows_of_whole_products(GpuContext& context);

// Nothing where the library does all of a wide one while the result is in registers, or the kernel does not fit.
std::optional<SummedProducts> whole_product(const GpuKernel& g);
void add_whole_product(const GpuKernel& g, const SummedProducts& product, StepList& steps);

}  // namespace nacre

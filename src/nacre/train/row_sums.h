// Divides the rows of features by their sums.
#pragma once

#include <string>

#include "nacre/tensor/tensor.h"

namespace nacre {

// Returns whether `how` (--normalize-features: auto, row, none) divides the rows of `x`; auto does
// if they look like word counts.
bool divides_rows(const Tensor& x, const std::string& how);
Tensor rows_divided_by_sum(const Tensor& x);

}  // namespace nacre

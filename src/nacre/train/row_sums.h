// Features whose rows are divided by their sums.
#pragma once

#include <string>

#include "nacre/tensor/tensor.h"

namespace nacre {

// Whether `how` (--normalize-features: auto, row, none) divides the rows of `x`: auto does where they look like counts
// of words.
bool divides_rows(const Tensor& x, const std::string& how);
Tensor rows_divided_by_sum(const Tensor& x);

}  // namespace nacre

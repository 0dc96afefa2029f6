// Source of predictions: the class of the largest score of each row, the first one where several are equal.
#pragma once

#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

// argmax(x, out: int32*, rows: int64), argmax_rows_of_block(classes) rows a block.
Source argmax(int64_t classes);
int64_t argmax_rows_of_block(int64_t classes);

}  // namespace nacre::cuda

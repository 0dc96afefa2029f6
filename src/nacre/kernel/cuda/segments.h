// Units of work of sums over the entries of rows, as they lie in device memory. Kernels that reduce
// row programs have units of their own (rows.h).
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

// A row, or a piece of a long row: the entries [begin, end). `partial` is the place for the sum of
// a piece; it is -1 if this is a whole row.
NACRE_STRUCT(Segment, (u32, row), (int, partial), (i64, begin, end));
// A row that is in pieces. Their sums lie in `count` places from `first` on. `length` is the number
// of entries of the whole row.
NACRE_STRUCT(SplitRow, (u32, row), (int, first, count, length));

}  // namespace nacre::cuda

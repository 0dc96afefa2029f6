// Dense products of rows on tensor cores (tf32) whose tail runs on the result while it is in
// registers. The product itself is never written to memory.
#pragma once

#include <vector>

#include "nacre/kernel/cuda/mma.h"
#include "nacre/kernel/cuda/params.h"
#include "nacre/kernel/cuda/rows.h"

namespace nacre::cuda {

inline constexpr int kRowsOfBlock[] = {128, 64};

// The sum over the inputs of x · w, and the tail that runs on it. An input has rows of k elements;
// the result has n columns and is MicroOp::root of the tail.
struct RowProduct {
  std::vector<int64_t> k;  // one or two inputs
  int64_t n = 0;
  const RowProgram* tail = nullptr;
  int64_t shared_bytes = 0;  // bytes of shared memory that a block may have
  // Rows of a block. With fewer rows, two blocks share a multiprocessor, and one of them multiplies
  // while the other runs its tail, but matrices are read twice as often. The choice does not change
  // a bit of the result.
  int rows = kRowsOfBlock[0];
};
// The largest number of columns of a result. A block computes whole rows and holds them in the
// registers of its threads, so rows cannot be wider.
inline constexpr int64_t kWidestRowProduct = 256;
bool fits(const RowProduct& what);
MmaTile tile_of(const RowProduct& what);
// Returns the number of rows of a block that the rule chooses. It is the smaller one for products
// over few elements, whose tails take longer than the products.
int rows_of_block(const RowProduct& what);
NACRE_PARAMS(RowProductParams, (i64, rows), (const u64*, step));
NACRE_PARAMS(RowFactorParams, (const float*, x), (const float*, w));
// The kernel takes RowProductParams, RowFactorParams of each input and the operands of the tail.
// Matrices lie as [n, matrix_ld(k)]. A block goes on to further tiles until there are none, so as
// many blocks as the device holds at once are enough.
Source row_product(const RowProduct& what);

}  // namespace nacre::cuda

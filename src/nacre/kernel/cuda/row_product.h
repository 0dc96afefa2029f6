// Dense products of rows on tensor cores (tf32) whose tail runs on the result while it is in registers: nothing in
// between reaches memory, whatever the tail does with its rows.
#pragma once

#include <vector>

#include "nacre/kernel/cuda/mma.h"
#include "nacre/kernel/cuda/params.h"
#include "nacre/kernel/cuda/rows.h"

namespace nacre::cuda {

inline constexpr int kRowsOfBlock[] = {128, 64};

// Σ over the inputs of x · w, rows of k elements each and a result of n columns, and `tail`, whose MicroOp::root it is.
struct RowProduct {
  std::vector<int64_t> k;  // of one or two inputs
  int64_t n = 0;
  const RowProgram* tail = nullptr;
  int64_t shared_bytes = 0;  // that a block may have
  // Of a block: the more, or the fewer and two blocks at a time, one of which multiplies while the other runs its tail,
  // for which matrices are read twice as often. Neither changes a bit of the result.
  int rows = kRowsOfBlock[0];
};
// A block has whole rows, of which each thread holds pairs of columns.
inline constexpr int64_t kWidestRowProduct = 256;
bool fits(const RowProduct& what);
MmaTile tile_of(const RowProduct& what);
// By rule: products over few elements have more to do after than before.
int rows_of_block(const RowProduct& what);
NACRE_PARAMS(RowProductParams, (i64, rows), (const u64*, step));
NACRE_PARAMS(RowFactorParams, (const float*, x), (const float*, w));
// Takes RowProductParams, RowFactorParams of each input and the operands of the tail. Matrices lie as
// [n, matrix_ld(k)]. Blocks go on to further tiles until there are none: as many as the device holds at once are
// enough.
Source row_product(const RowProduct& what);

}  // namespace nacre::cuda

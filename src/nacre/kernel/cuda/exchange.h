// Sources of the kernels with which ranks on GPUs read rows and arrays of each other.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

NACRE_PARAMS(MoveRowsParams, (const RowWord*, from), (const u32* __restrict__, from_index), (RowWord*, to),
             (const u32* __restrict__, to_index), (i64, rows));
// How rows of floats are moved. Rows consist of `words` words of `floats` floats (1, 2 or 4), to
// which all addresses must be aligned.
struct RowMove {
  int floats = 4;
  int64_t words = 0;
  bool add = false;  // adds the rows to those at `to`
};
// Copies or adds row from_index[i] of `from` to row to_index[i] of `to`. Without a list, i is the
// number of the row. No number occurs twice in to_index.
Source move_rows(const RowMove& move);
// Returns the number of blocks of move_rows().
int64_t move_blocks(const RowMove& move, int64_t rows);

NACRE_PARAMS(SumPartsParams, (Value*, out), (i64, count));
// Adds up the operands in their order. They are `parts` arrays of floats or doubles.
Source sum_parts(int parts, bool doubles);
inline constexpr int kSumThreads = 256;

}  // namespace nacre::cuda

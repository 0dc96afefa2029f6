// Sources of the kernels with which ranks on GPUs read rows and arrays of each other.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

NACRE_PARAMS(MoveRowsParams, (const RowWord*, from), (const u32* __restrict__, from_index), (Out*, to),
             (const u32* __restrict__, to_index), (i64, rows), (i64, from_pitch), (i64, to_pitch));

// Says what happens to the elements of rows that are moved.
enum class RowAction : uint8_t {
  copy,       // elements of any type are copied unchanged
  add,        // f32 is added to f32
  add_bf16,   // bf16 is added to bf16
  narrow,     // f32 becomes bf16
  widen,      // bf16 becomes f32
  widen_add,  // bf16 is added to f32
};
// Says how a kernel moves rows. A thread moves one word at a time, and a row has `words` words. For
// RowAction::copy and add, a word has `floats` times four bytes (1, 2 or 4). For the actions that
// read or write bf16, a word has four elements. All addresses must be multiples of the size of a
// word.
struct RowMove {
  int floats = 4;
  int64_t words = 0;
  RowAction action = RowAction::copy;
};
// Moves row from_index[i] of `from` to row to_index[i] of `to`. If a list is null, i itself is the
// number of the row. No number occurs twice in to_index. from_pitch and to_pitch are the numbers of
// words from one row of `from` or `to` to the next.
Source move_rows(const RowMove& move);
// Returns the number of blocks with which move_rows() is launched for `rows` rows.
int64_t move_blocks(const RowMove& move, int64_t rows);

NACRE_PARAMS(SumArraysParams, (Value*, out), (i64, count));
// Computes `out` as the sum of `arrays` operands, which are added in their order. They have floats
// or, with `doubles`, doubles.
Source sum_arrays(int arrays, bool doubles);
inline constexpr int kSumThreads = 256;

}  // namespace nacre::cuda

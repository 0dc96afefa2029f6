// Descriptions of reductions over the edges of rows, from which kernel/cuda/rows.h writes their
// CUDA source. Planning asks that writer how many rows such a kernel has in flight, and the GPU
// back end has it write the source.
#pragma once

#include "nacre/kernel/cuda/rows.h"
#include "nacre/plan/variants/sums.h"

namespace nacre {

// SummedProgram is a row program whose register `value` is summed over the edges of each row.
struct SummedProgram {
  RowProgram program;
  int value = -1;
};
// Returns a weighted sum of gathered rows (spmm) as a program over `width` of their columns. The
// column of an entry takes the place of its source.
SummedProgram summed_program(const PlannedKernel& k, int64_t width);

// Returns the description of a reduction kernel of the plan: a reduce or gtask of `program`, or an
// spmm. Only the member rows_at_dst of ReduceSpec::side is set. `program` must outlive the result.
cuda::ReduceSpec reduce_spec(const PlannedKernel& k, const RowProgram& program, int value);
// Returns the description of an spmm in tiles of columns. The program is as wide as a tile.
cuda::ReduceSpec spmm_spec(const PlannedKernel& k, const SummedProgram& sum, const ColumnTiles& tiles);

// Returns the fewest entries of a row that are worth a group of threads of their own in a reduction
// of kind reduce or, in the given tiles, of kind spmm.
int64_t shortest_piece(const PlannedKernel& k, const ColumnTiles& tiles);

}  // namespace nacre

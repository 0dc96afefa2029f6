// Typed products on tensor cores (tf32). Their rows are read where they lie, so neither gathered
// copies of rows nor products of pairs are written to memory.
#pragma once

#include "nacre/kernel/cuda/mma.h"
#include "nacre/kernel/cuda/params.h"
#include "nacre/kernel/program.h"

namespace nacre::cuda {

// A run of positions of one type. If rows are found by cell, `types` has a bit for each type that
// at least one vertex of the run has.
NACRE_STRUCT(MmaRun, (u32, type, begin, end, types));
inline constexpr int64_t kMostMasked = 32;  // types that have a bit in MmaRun::types

// Rows of k elements times a matrix for each type. The matrices lie as [types, n, matrix_ld(k)],
// filled up with zeros.
struct TypedProduct {
  int64_t k = 0, n = 0;
  // If > 0, a position has this many cells, one for each type. The row of each cell is multiplied
  // by the matrix of its type, and the products are summed.
  int64_t cells = 0;
  int64_t shared_bytes = 0;  // bytes of shared memory that a block may have
  // Whether a block of threads keeps its columns of the matrix in shared memory, so that long runs
  // read them only once.
  bool resident = false;
  // If not null (allowed with cells only), one more product is added to the sum of each position:
  // the position's own row times a matrix that belongs to no type. This program then runs on the
  // sum while it is in registers (product_tail.h).
  const RowProgram* tail = nullptr;
};
// Returns whether a block has shared memory for the stages that the product needs, and whether the
// tail, if there is one, can run on the result.
bool fits(const TypedProduct& what);
MmaTile tile_of(const TypedProduct& what);
int64_t column_blocks(const TypedProduct& what);
NACRE_PARAMS(TypedProductParams, (const float* __restrict__, x), (const u32* __restrict__, map_in),
             (const float* __restrict__, w), (float* __restrict__, out), (const u32* __restrict__, map_out),
             (const MmaRun* __restrict__, runs));
// The parameters that a kernel with a tail takes after TypedProductParams and before the operands
// of the tail. map_out gives the rows of `own`.
NACRE_PARAMS(TypedProductTailParams, (const u64*, step), (const float*, own), (const float*, own_matrix));
// Multiplies the rows of each run by the matrix of its type. The kernel is launched with one block
// for each run and column block. A run has at most tile.rows() positions unless the matrix is
// resident. Maps give the row of a position (map_in: of cell position · cells + type). If a map is
// null, the row is the position itself. kNoRow is a row of zeros. With a tail, `out` is not used
// and map_out is not null.
Source typed_product(const TypedProduct& what);

// The sum of x[map_x]ᵀ · g[map_g] over the positions of each type, [k, n].
struct TypedGrad {
  int64_t k = 0, n = 0;
  int64_t shared_bytes = 0;
};
bool fits(const TypedGrad& what);
MmaTile tile_of(const TypedGrad& what);
// Returns how many blocks share a run.
int64_t blocks_of_run(const TypedGrad& what);
NACRE_PARAMS(TypedGradParams, (const float* __restrict__, x), (const u32* __restrict__, map_x),
             (const float* __restrict__, g), (const u32* __restrict__, map_g), (const MmaRun* __restrict__, runs),
             (float* __restrict__, partials));
// Computes the sum over the positions of each run and writes it to a matrix that belongs to the
// run. map_x and map_g may be null.
Source typed_grad(const TypedGrad& what);
NACRE_PARAMS(TypedGradTotalParams, (const float* __restrict__, partials), (const int* __restrict__, first),
             (float* __restrict__, dw));
// Adds the sums of the runs of each type in order, one element of dw in each thread. `first` has
// types + 1 elements.
Source typed_grad_total(const TypedGrad& what, int64_t types);

}  // namespace nacre::cuda

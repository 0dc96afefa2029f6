// Typed products on tensor cores (tf32), whose rows are read from where they lie: no gathered copies, no products by
// pair in between.
#pragma once

#include "nacre/kernel/cuda/mma.h"
#include "nacre/kernel/cuda/source.h"
#include "nacre/kernel/program.h"

namespace nacre::cuda {

// Rows of one type, by position; of rows found by slot, `types` has a bit for each type that one of them has.
struct MmaRun {
  uint32_t type;
  uint32_t begin, end;
  uint32_t types = 0;
};
inline constexpr int64_t kMostMasked = 32;  // types that have a bit

// Rows of k elements times a matrix for each type, which lie as [types, n, matrix_ld(k)], filled up with zeros.
struct TypedProduct {
  int64_t k = 0, n = 0;
  int64_t slots = 0;         // > 0: a row of the input for each type, found by slot; their products are summed
  int64_t shared_bytes = 0;  // that a block may have
  // A block keeps its columns of the matrix in shared memory: for long runs, which read it once.
  bool resident = false;
  // By slot: a position's own row, times a matrix of its own, is one more product of the sum, and the tail runs on that
  // while it is in registers (product_tail.h).
  const RowProgram* tail = nullptr;
};
// False where not even two stages fit, or the tail's program is none that can run there.
bool fits(const TypedProduct& what);
MmaTile tile_of(const TypedProduct& what);
int64_t column_blocks(const TypedProduct& what);
// typed_product(x, map_in or null, w, out, map_out or null, runs): positions of runs (of at most
// tile.rows() unless the matrix is resident), one a block and column block. Maps give the row of a position (map_in: of
// slot position · slots + type), null: its own number; kNoRow: a row of zeros. With a tail, `out` is not used,
// map_out is not null, and further ones follow: step, rows by map_out and their matrix, the tail's operands.
Source typed_product(const TypedProduct& what);

// Σ over positions of one type of x[map_x]ᵀ · g[map_g], [k, n].
struct TypedGrad {
  int64_t k = 0, n = 0;
  int64_t shared_bytes = 0;
};
bool fits(const TypedGrad& what);
MmaTile tile_of(const TypedGrad& what);
// Blocks that share a run.
int64_t blocks_of_run(const TypedGrad& what);
// typed_grad(x, map_x or null, g, map_g or null, runs, partials): each run's sum goes to a matrix of its own.
Source typed_grad(const TypedGrad& what);
// typed_grad_total(partials, first: types + 1 int32, dw): adds the runs of each type in order; a thread for each
// element of dw.
Source typed_grad_total(const TypedGrad& what, int64_t types);

}  // namespace nacre::cuda

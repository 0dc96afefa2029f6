// Parts of products on tensor cores (tf32): how the result of a block is divided among its warps,
// the slices of operands in shared memory, and the instructions.
#pragma once

#include <cstdint>
#include <string>

namespace nacre::cuda {

// Says how the result of a block is divided among its warps_m · warps_n warps. Each warp computes
// `m` times 16 rows and `n` times 8 columns.
struct MmaTile {
  int warps_m = 1, warps_n = 1;
  int m = 1, n = 1;
  int stages = 0;           // slices that are in shared memory at the same time
  int together = 1;         // blocks that run on a multiprocessor at the same time
  int64_t fixed_bytes = 0;  // bytes of shared memory before the stages
  int64_t stage_bytes = 0, shared_bytes = 0;
  int64_t rows() const { return int64_t{warps_m} * m * 16; }
  int64_t columns() const { return int64_t{warps_n} * n * 8; }
  int threads() const { return warps_m * warps_n * 32; }
};

// The size of a stage is a multiple of this many bytes, because the hardware's description of a
// slice counts in such units.
inline constexpr int64_t kStageUnit = 1024;
inline constexpr int64_t kDepth = 32;  // elements of the summed dimension in a slice
// Distance of the rows of a slice in shared memory. A warp reads 8 rows at a time, 4 elements of
// each; at this distance no two of them fall into the same bank.
inline constexpr int64_t kLdAlong = kDepth + 4;

// Returns total / most, rounded up.
inline int64_t divide_up(int64_t total, int64_t most) { return (total + most - 1) / most; }
// Returns how many elements of a row of this width one copy moves.
inline int64_t copied_at_once(int64_t width) { return width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1; }
// Returns the number of elements from one row to the next of a matrix that products read. The
// matrix lies as [n, matrix_ld(k)]; the elements behind the first k of a row are zeros.
inline int64_t matrix_ld(int64_t k) { return divide_up(k, 4) * 4; }

// Sets the number of stages of the tile, each of `floats` floats, and the sizes that follow from
// it. The kernel uses `fixed` more floats of shared memory, and a block may have `limit` bytes. Two
// blocks share a multiprocessor if their registers allow it and `wanted` stages fit into half of
// the memory.
void set_stages(MmaTile& tile, int64_t floats, int64_t fixed, int64_t limit, int64_t wanted = 0);

// Returns the head of a source: the prelude, and definitions of the numbers of the tile.
std::string tile_text(const MmaTile& tile);
// Returns the text of the functions copy_async, mma and multiply, and, if the architecture has the
// instructions and the block has 64 or 128 rows, of wgmma (the text then defines WGMMA as 1). A
// source defines A_ROW, A_DEPTH, B_COLUMN and B_DEPTH in front of this text.
std::string mma_text(const MmaTile& tile, bool a_in_registers);
// Returns PITCH and place(row, k), which say where an element lies in a slice that is read along
// its rows, and the functions add_slice and slices_end.
std::string slices_text();

}  // namespace nacre::cuda

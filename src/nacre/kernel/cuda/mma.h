// What products on tensor cores (tf32) are made of: how a block shares its result out, slices in shared memory, and the
// instructions.
#pragma once

#include <cstdint>
#include <string>

namespace nacre::cuda {

// How a block's result is cut over its warps: warps_m · warps_n warps, each `m` times 16 rows and `n` times 8 columns.
struct MmaTile {
  int warps_m = 1, warps_n = 1;
  int m = 1, n = 1;
  int stages = 0;
  int together = 1;         // blocks on a multiprocessor
  int64_t fixed_bytes = 0;  // of shared memory before the stages
  int64_t stage_bytes = 0, shared_bytes = 0;
  int64_t rows() const { return int64_t{warps_m} * m * 16; }
  int64_t columns() const { return int64_t{warps_n} * n * 8; }
  int threads() const { return warps_m * warps_n * 32; }
};

inline constexpr int64_t kStageUnit = 1024;  // bytes that stages are multiples of, as descriptions of slices count
inline constexpr int64_t kDepth = 32;        // of the slices that stand in shared memory
// Rows of kDepth elements that a warp reads 8 of, 4 elements each.
inline constexpr int64_t kLdAlong = kDepth + 4;

inline int64_t parts(int64_t total, int64_t most) { return (total + most - 1) / most; }
// Elements of a row that are copied at once.
inline int64_t copied_at_once(int64_t width) { return width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1; }
// Distance of the rows of a matrix as products read it: [n, matrix_ld(k)], filled up with zeros.
inline int64_t matrix_ld(int64_t k) { return parts(k, 4) * 4; }

// Besides `fixed` floats, as many stages as pay. Two blocks on a multiprocessor where their registers allow it and
// `wanted` stages fit into half of the memory.
void set_stages(MmaTile& tile, int64_t floats, int64_t fixed, int64_t limit, int64_t wanted = 0);

// The tile's numbers and, after further ones of the kernel (A_ROW, A_DEPTH, B_COLUMN, B_DEPTH), the functions:
// copy_async, mma, multiply, and where the architecture has them and the block has 64 or 128 rows (WGMMA) wgmma.
std::string tile_text(const MmaTile& tile);
std::string mma_text(const MmaTile& tile, bool a_in_registers);
// PITCH and place(row, k): where an element lies in a slice that is read along its rows; add_slice, slices_end.
std::string slices_text();

}  // namespace nacre::cuda

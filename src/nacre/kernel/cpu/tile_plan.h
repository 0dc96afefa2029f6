// Decides where the registers of a program live while a tile runs. A register is an alias of memory
// that already holds its value (loads in place, root), or it is written straight to the memory it
// is stored to, or it lies in the tile's scratch. Scratch is used again once its register is no
// longer needed, and elementwise micro-ops write over an operand that is read for the last time, so
// that tiles stay small.
#pragma once

#include <array>
#include <cstdint>

#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {

// The largest number of rows of a tile that is multiplied by matrices.
inline constexpr int64_t kMaxProductRows = 384;

// Says what a kernel wants from a program besides its stores.
struct PlanOptions {
  int keep = -1;  // registers that the kernel reads after each tile; -1: none
  int also_keep = -1;
  // Whether the kept registers must be packed rows, because they are multiplied.
  bool packed = false;
  // The memory to which register `keep` is written, as packed rows by position. With null, the
  // kernel reads the register wherever the plan puts it.
  float* keep_to = nullptr;
  // Whether the positions of a tile are consecutive. The positions of edges that are grouped by
  // source are not.
  bool consecutive = true;
};

struct TilePlan {
  enum Home : uint8_t { alias, scratch, direct };

  const BoundProgram* program = nullptr;
  PlanOptions options;
  int64_t rows = 0;        // rows of a tile
  int64_t row_floats = 0;  // floats of scratch for each row
  bool uses_src = false, uses_dst = false, uses_type = false;
  bool products = false;  // whether rows of a tile are multiplied by matrices
  std::array<Home, kMaxRegisters> home;
  std::array<int32_t, kMaxRegisters> offset;  // for scratch: floats of a row before this register
  std::array<float*, kMaxRegisters> target;   // for direct: row 0 of the memory it is stored to
  // For products: the matrices packed for the GEMM, one after another by type. If a pointer is
  // null, the matrices are read as they are, which is slower and gives the same bits.
  std::array<const float*, kMaxRegisters> packed{};
};

TilePlan make_tile_plan(const BoundProgram& program, const PlanOptions& options = {});

// Returns what scratch_floats() returns, for plans whose kept registers are also multiplied.
int64_t product_scratch_floats(const RowProgram& program);

// Packs the matrices that the program multiplies by into `to`, which holds packed_floats(program,
// types) floats.
int64_t packed_floats(const RowProgram& program, int types);
void pack_matrices(TilePlan& plan, int types, float* to);

}  // namespace nacre::cpu

// Where the registers of a program live while a tile runs. A register is either an alias of memory
// that holds it already (loads in place, root), or written straight to the memory it is stored to,
// or a slot of the tile's scratch. Slots are reused once a register is dead, and elementwise
// micro-ops write over a dying operand, so tiles stay small.
#pragma once

#include <array>
#include <cstdint>

#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {

inline constexpr int kMaxRegisters = 128;
inline constexpr int64_t kMaxProductRows = 384;  // of a tile that is multiplied by matrices

// What a kernel wants from a program besides its stores.
struct PlanOptions {
  int keep = -1;  // registers read after each tile
  int also_keep = -1;
  bool packed = false;  // the kept ones are wanted as packed rows, to multiply them
  // where `keep` is wanted (packed rows by position), or null: wherever it lies
  float* keep_to = nullptr;
  bool consecutive = true;  // positions of a tile are consecutive (not so for edges by source)
};

struct TilePlan {
  enum Place : uint8_t { alias, slot, direct };

  const BoundProgram* program = nullptr;
  PlanOptions options;
  int64_t rows = 0;        // of a tile
  int64_t row_floats = 0;  // of all slots, per row
  bool uses_src = false, uses_dst = false, uses_type = false;
  bool products = false;  // rows of a tile are multiplied by matrices
  std::array<Place, kMaxRegisters> place;
  std::array<int32_t, kMaxRegisters> offset;  // slot: floats per row before it
  std::array<float*, kMaxRegisters> target;   // direct: row 0 of the memory it is stored to
  // products: the matrices in the GEMM's order, one after another by type; null: read as they are,
  // slower, same bits
  std::array<const float*, kMaxRegisters> packed{};
};

TilePlan make_tile_plan(const BoundProgram& program, const PlanOptions& options = {});

// As scratch_floats, for plans whose kept registers are multiplied, too.
int64_t product_scratch_floats(const RowProgram& program);

// Rearranges the matrices the program multiplies by into `to`, packed_floats(program, types)
// floats.
int64_t packed_floats(const RowProgram& program, int types);
void pack_matrices(TilePlan& plan, int types, float* to);

}  // namespace nacre::cpu

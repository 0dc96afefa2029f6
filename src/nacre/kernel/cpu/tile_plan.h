// Where the registers of a program live while a tile runs. A register is either an alias of memory that holds it
// already (loads in place, root), or written straight to the memory it is stored to, or a slot of the tile's scratch.
// Slots are reused once a register is dead, and elementwise micro-ops write over a dying operand, so tiles stay small.
#pragma once

#include <array>
#include <cstdint>

#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {

inline constexpr int kMaxRegisters = 128;

// What a kernel wants from a program besides its stores.
struct PlanOptions {
  int keep = -1;             // register read after each tile
  float* keep_to = nullptr;  // where `keep` is wanted (packed rows by position), or null: wherever it lies
  bool consecutive = true;   // positions of a tile are consecutive (not so for edges by source)
};

struct TilePlan {
  enum Place : uint8_t { alias, slot, direct };

  const BoundProgram* program = nullptr;
  PlanOptions options;
  int64_t rows = 0;        // of a tile
  int64_t row_floats = 0;  // of all slots, per row
  bool uses_src = false, uses_dst = false, uses_type = false;
  std::array<Place, kMaxRegisters> place;
  std::array<int32_t, kMaxRegisters> offset;  // slot: floats per row before it
  std::array<float*, kMaxRegisters> target;   // direct: row 0 of the memory it is stored to
};

TilePlan make_tile_plan(const BoundProgram& program, const PlanOptions& options = {});

}  // namespace nacre::cpu

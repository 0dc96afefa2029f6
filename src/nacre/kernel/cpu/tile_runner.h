// Runs a program on one tile after another. Each thread has a runner of its own, and kernels use it
// as their inner step.
#pragma once

#include <array>

#include "nacre/kernel/cpu/micro_ops.h"
#include "nacre/kernel/cpu/tile_plan.h"

namespace nacre::cpu {

// The rows that a program runs on together, at most TilePlan::rows. Arrays that the program does
// not need are null.
struct Tile {
  int64_t first = 0;  // position of the first row
  int64_t rows = 0;
  const uint32_t* position = nullptr;  // null: the positions are first, first + 1, …
  const uint32_t* src = nullptr;
  const uint32_t* dst = nullptr;
  const uint32_t* type = nullptr;
  // What MicroOp::root reads: the rows of the kernel that this program follows, from the row at
  // position `first` on.
  const float* root = nullptr;
};

class TileRunner {
 public:
  // Makes a runner whose registers lie in `scratch`, which holds scratch_floats(program) floats.
  TileRunner(const TilePlan& plan, float* scratch);

  void run(const Tile& tile);
  // Runs rows [begin, end) of a vertex, type or param space; `root` holds those rows.
  void run_rows(int64_t begin, int64_t end, const float* root);

  // Returns the rows of the register after run().
  const Rows& value(int reg) const { return registers_[reg]; }
  int64_t tile_rows() const { return plan_.rows; }
  const TilePlan& plan() const { return plan_; }
  // Return scratch for one index for each row of the tile. This memory lies behind the registers.
  uint32_t* row_index() { return index_; }
  uint32_t* type_index() { return index_ + plan_.rows; }
  // Returns scratch for two rows as wide as the widest register. This memory lies behind the
  // indices.
  float* spare() { return reinterpret_cast<float*>(index_ + 2 * plan_.rows); }

 private:
  void load(const Micro& m, const Tile& tile);
  void store(const Micro& m, const Tile& tile);
  void compute(const Micro& m, const Tile& tile);
  void drop(MicroCall call, const uint32_t* ids) const;
  void multiply(const Micro& m, const Tile& tile);
  float* output(int reg, const Tile& tile);

  const TilePlan& plan_;
  const RowProgram& program_;
  const MicroFunction* functions_;
  const SegmentFunctions& segments_;
  float* scratch_;
  uint32_t* index_;
  std::array<Rows, kMaxRegisters> registers_;
};

// Prepares tiles of consecutive entries of a view. Callers must ask for entries in increasing
// order.
class EdgeTiles {
 public:
  EdgeTiles(const RowView& view, int64_t first_row, TileRunner& runner)
      : view_(view), row_(first_row), runner_(runner) {}
  Tile tile(int64_t begin, int64_t end);

 private:
  const RowView& view_;
  int64_t row_;
  TileRunner& runner_;
};

// Returns the width of the rows that a post program starts from; 0 if it does not read them.
int64_t root_width(const RowProgram& program);

// Returns this thread's part of `scratch`, after checking that it holds `floats` floats.
float* thread_scratch(const Scratch& scratch, int64_t floats);

// Returns whether the tiles of this view have consecutive positions.
inline bool consecutive(const RowView& view) { return view.edge_id == nullptr; }

}  // namespace nacre::cpu

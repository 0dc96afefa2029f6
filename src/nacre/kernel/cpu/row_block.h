// The tail of a kernel that produces rows. Blocks of rows that are small enough to stay in cache
// are written to `out` (or to scratch if nobody reads them later) and run through the post program
// at once.
#pragma once

#include <algorithm>
#include <optional>

#include "nacre/base/function_ref.h"
#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cpu/tile_plan.h"

namespace nacre::cpu {

class RowBlocks {
 public:
  struct Options {
    const RowView* view = nullptr;
    int64_t width = 0;
    float* out = nullptr;
    const BoundProgram* post = nullptr;
  };
  explicit RowBlocks(const Options& options);

  // Returns the number of floats of scratch that the calls below use.
  int64_t floats() const { return floats_; }

  // Calls body(begin, end, rows) for blocks of the chunk's rows. The body fills `rows`, packed
  // rows; then the post program runs on them.
  void for_blocks(const RowChunk& chunk, float* scratch, FunctionRef<void(int64_t, int64_t, float*)> body) const;
  // Calls body for a single row, and then runs the post program on that row.
  void one_row(int64_t row, float* scratch, FunctionRef<void(float*)> body) const;

 private:
  void finish(int64_t begin, int64_t end, const float* rows, float* scratch) const;

  Options options_;
  std::optional<TilePlan> post_;
  int64_t block_rows_;
  int64_t floats_;
};

int64_t row_block_floats(const RowView& view, int64_t width, const RowProgram* post);

}  // namespace nacre::cpu

// The tail of a kernel that produces rows: blocks of rows small enough to stay in cache go to `out`
// (or to scratch when nobody keeps them) and through the post program at once.
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

  // Floats of scratch the calls below use.
  int64_t floats() const { return floats_; }

  // Calls body(begin, end, rows) for blocks of the chunk's rows; the body fills `rows`, packed.
  void for_blocks(const RowChunk& chunk, float* scratch, FunctionRef<void(int64_t, int64_t, float*)> body) const;
  // The same for a single row.
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

#include "nacre/kernel/cpu/row_block.h"

#include "nacre/base/error.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kBlockFloats = 16 << 10;  // most floats of a block of rows (64 KiB)

int64_t block_rows(int64_t width) { return std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, width), 1, 1024); }

}  // namespace

RowBlocks::RowBlocks(const Options& options) : options_(options), block_rows_(block_rows(options.width)) {
  const RowProgram* post = nullptr;
  if (!options.post->empty()) {
    post = options.post->program;
    post_ = make_tile_plan(*options.post);
    const int64_t root = root_width(*post);
    NACRE_CHECK(root == 0 || root == options.width,
                "the post program reads rows of another width than the kernel computes");
  }
  floats_ = row_block_floats(*options.view, options.width, post);
}

void RowBlocks::for_blocks(const RowChunk& chunk, float* scratch,
                           FunctionRef<void(int64_t, int64_t, float*)> body) const {
  const bool whole = options_.out != nullptr && !post_;
  const int64_t step = whole ? chunk.row_end - chunk.row_begin : block_rows_;
  for (int64_t begin = chunk.row_begin; begin < chunk.row_end; begin += step) {
    const int64_t end = std::min(chunk.row_end, begin + step);
    float* rows = options_.out != nullptr ? options_.out + begin * options_.width : scratch;
    body(begin, end, rows);
    finish(begin, end, rows, scratch);
  }
}

void RowBlocks::one_row(int64_t row, float* scratch, FunctionRef<void(float*)> body) const {
  float* out = options_.out != nullptr ? options_.out + row * options_.width : scratch;
  body(out);
  finish(row, row + 1, out, scratch);
}

void RowBlocks::finish(int64_t begin, int64_t end, const float* rows, float* scratch) const {
  if (!post_) return;
  TileRunner(*post_, scratch + block_rows_ * options_.width).run_rows(begin, end, rows);
}

int64_t row_block_floats(const RowView& /*view*/, int64_t width, const RowProgram* post) {
  const int64_t program = post == nullptr || post->empty() ? 0 : scratch_floats(*post);
  return block_rows(width) * width + program;
}

}  // namespace nacre::cpu

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/micro_ops.h"
#include "nacre/kernel/cpu/row_block.h"
#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cpu/spmm_kernels.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {
namespace {

// A result of at least this many floats (32 MiB) is written past the caches.
constexpr int64_t kStreamFloats = 8 << 20;

SpmmRows rows_of(const SpmmArgs& args, const RowChunk& chunk) {
  SpmmRows s;
  s.col = args.col != nullptr ? args.col : args.view->col;
  s.edge_id = args.view->edge_id;
  s.x = args.x;
  s.weight = args.weight;
  s.width = args.width;
  s.heads = args.heads;
  s.fetch_end = chunk.edge_end;
  return s;
}

void sum_piece(const SpmmArgs& args, const RowChunk& chunk) {
  const int64_t bounds[2] = {chunk.edge_begin, chunk.edge_end};
  SpmmRows s = rows_of(args, chunk);
  s.row_ptr = bounds;
  s.rows = 1;
  s.out = args.partials + chunk.partial * args.width;
  spmm_rows(s);
  if (args.own != nullptr) dot_rows(s, args.own + chunk.row_begin * args.width, args.dots);
}

void combine(const SpmmArgs& args, const SplitRow& split, float* out) {
  const SegmentFunctions& segments = segment_functions();
  const Rows sums = {args.partials + split.first_partial * args.width, nullptr, args.width, args.width};
  RowSegment segment;
  segment.value = &sums;
  segment.end = split.num_partials;
  segment.sum = out;
  segments.add(segment);
  const int64_t length = args.view->row_ptr[split.row + 1] - args.view->row_ptr[split.row];
  if (args.mean) segments.scale(out, args.width, 1.0f / static_cast<float>(length));
}

}  // namespace

int64_t spmm_scratch_floats(const RowView& view, int64_t width, const RowProgram* post) {
  return row_block_floats(view, width, post);
}

void spmm(const SpmmArgs& args) {
  const RowView& view = *args.view;
  NACRE_CHECK(args.heads >= 1 && args.width % args.heads == 0,
              "the width of the rows is not a multiple of the number of heads");
  NACRE_CHECK(view.num_partials == 0 || args.partials != nullptr,
              "rows that are cut into pieces need memory for partial sums");
  if (args.width == 0) return;
  // If the result is larger than the caches, it is written past them. Otherwise the processor would
  // read every line of `out` before it overwrites the line, which takes a third longer.
  const bool stream = args.post.empty() && view.rows * args.width >= kStreamFloats;
  const RowBlocks blocks({&view, args.width, args.out, &args.post});
  const auto scratch = [&] { return thread_scratch(args.scratch, blocks.floats()); };
  parallel_tasks(static_cast<int64_t>(view.chunks.size()), [&](int64_t i) {
    const RowChunk& chunk = view.chunks[i];
    if (chunk.partial >= 0) return sum_piece(args, chunk);
    SpmmRows s = rows_of(args, chunk);
    s.mean = args.mean;
    s.stream = stream;
    blocks.for_blocks(chunk, scratch(), [&](int64_t begin, int64_t end, float* rows) {
      s.row_ptr = view.row_ptr + begin;
      s.rows = end - begin;
      s.out = rows;
      spmm_rows(s);
      // The dot products are computed here because the gathered rows of the block are still in a
      // cache.
      if (args.own != nullptr) dot_rows(s, args.own + begin * args.width, args.dots);
    });
  });
  parallel_tasks(static_cast<int64_t>(view.split_rows.size()), [&](int64_t i) {
    const SplitRow& split = view.split_rows[i];
    blocks.one_row(split.row, scratch(), [&](float* out) { combine(args, split, out); });
  });
}

}  // namespace nacre::cpu

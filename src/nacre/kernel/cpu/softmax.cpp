#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/softmax_kernels.h"
#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {
namespace {

struct Pass {
  const RowView* by_dst;
  const BoundProgram* program;
  int value;
  const float* y;  // null: compute the softmax; otherwise its gradient
  float* out;
  const Scratch* scratch;
};

// Runs the softmax or its gradient. The values of the program are written straight to `out`, chunk
// by chunk, and normalised there while they are in cache. Rows that are cut into pieces are
// normalised when all their pieces are there.
void run(const Pass& pass) {
  const RowView& view = *pass.by_dst;
  NACRE_CHECK(consecutive(view), "softmax needs the edges grouped by destination");
  PlanOptions options;
  options.keep = pass.value;
  options.keep_to = pass.out;
  const TilePlan plan = make_tile_plan(*pass.program, options);
  const int64_t floats = scratch_floats(*pass.program->program);
  const auto normalise = [&](int64_t row, int64_t rows, float* spare) {
    SoftmaxRows s;
    s.row_ptr = view.row_ptr + row;
    s.rows = rows;
    s.heads = pass.program->program->widths[pass.value];
    s.values = pass.out;
    s.y = pass.y;
    s.spare = spare;
    pass.y == nullptr ? softmax_rows(s) : softmax_grad_rows(s);
  };
  parallel_tasks(static_cast<int64_t>(view.chunks.size()), [&](int64_t i) {
    const RowChunk& chunk = view.chunks[i];
    TileRunner runner(plan, thread_scratch(*pass.scratch, floats));
    EdgeTiles tiles(view, chunk.row_begin, runner);
    for (int64_t e = chunk.edge_begin; e < chunk.edge_end; e += plan.rows) {
      runner.run(tiles.tile(e, std::min(chunk.edge_end, e + plan.rows)));
    }
    if (chunk.partial < 0) normalise(chunk.row_begin, chunk.row_end - chunk.row_begin, runner.spare());
  });
  parallel_tasks(static_cast<int64_t>(view.split_rows.size()),
                 [&](int64_t i) { normalise(view.split_rows[i].row, 1, thread_scratch(*pass.scratch, floats)); });
}

}  // namespace

void edge_softmax(const SoftmaxArgs& args) {
  run({args.by_dst, &args.program, args.value, nullptr, args.out, &args.scratch});
}

void edge_softmax_grad(const SoftmaxGradArgs& args) {
  run({args.by_dst, &args.program, args.value, args.y, args.out, &args.scratch});
}

}  // namespace nacre::cpu

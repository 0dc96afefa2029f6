#include <algorithm>

#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kTilesPerTask = 16;
constexpr int64_t kWantedTasks = 64;

}  // namespace

void map_rows(const BoundProgram& program, RowSpan rows, const Scratch& scratch) {
  const int64_t count = rows.count();
  if (program.empty() || count <= 0) return;
  const TilePlan plan = make_tile_plan(program);
  const int64_t floats = scratch_floats(*program.program);
  const int64_t tiles = std::clamp<int64_t>(count / (plan.rows * kWantedTasks), 1, kTilesPerTask);
  parallel_for(count, plan.rows * tiles, [&](int64_t begin, int64_t end) {
    TileRunner(plan, thread_scratch(scratch, floats)).run_rows(rows.begin + begin, rows.begin + end, nullptr);
  });
}

void map_rows_serial(const BoundProgram& program, int64_t begin, int64_t end, const float* root, float* scratch) {
  if (program.empty()) return;
  const TilePlan plan = make_tile_plan(program);
  TileRunner(plan, scratch).run_rows(begin, end, root);
}

void map_edges(const BoundProgram& program, const RowView& by_dst, const Scratch& scratch) {
  if (program.empty()) return;
  PlanOptions options;
  options.consecutive = consecutive(by_dst);
  const TilePlan plan = make_tile_plan(program, options);
  const int64_t floats = scratch_floats(*program.program);
  parallel_tasks(static_cast<int64_t>(by_dst.chunks.size()), [&](int64_t i) {
    const RowChunk& chunk = by_dst.chunks[i];
    TileRunner runner(plan, thread_scratch(scratch, floats));
    EdgeTiles tiles(by_dst, chunk.row_begin, runner);
    for (int64_t e = chunk.edge_begin; e < chunk.edge_end; e += plan.rows) {
      runner.run(tiles.tile(e, std::min(chunk.edge_end, e + plan.rows)));
    }
  });
}

}  // namespace nacre::cpu

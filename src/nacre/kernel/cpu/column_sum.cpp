#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kMaxChunks = 256;
constexpr int64_t kMinChunkRows = 256;

int64_t chunk_rows(int64_t rows) { return std::max(kMinChunkRows, (rows + kMaxChunks - 1) / kMaxChunks); }
int64_t num_chunks(int64_t rows) { return (rows + chunk_rows(rows) - 1) / chunk_rows(rows); }

}  // namespace

int64_t column_sum_workspace(int64_t rows, int64_t width) { return std::max<int64_t>(1, num_chunks(rows)) * width; }

namespace {

// Adds the value register of one tile to `sum`.
void add_tile(TileRunner& runner, const ColumnSumArgs& args, const Tile& tile, bool fresh, float* sum) {
  runner.run(tile);
  RowSegment segment;
  segment.value = &runner.value(args.value);
  segment.end = tile.rows;
  segment.sum = sum;
  segment.fresh = fresh;
  segment_functions().add(segment);
}

// Sums register `value` over the edges. The chunks of the view are cut into at most kMaxChunks
// groups of consecutive chunks, and the sum of each group is left in the workspace.
void sum_edges(const ColumnSumArgs& args, const TilePlan& plan, int64_t width) {
  const int64_t floats = scratch_floats(*args.program.program);
  const auto& chunks = args.edges->chunks;
  const auto count = static_cast<int64_t>(chunks.size());
  const int64_t groups = num_chunks(args.rows);
  const int64_t per_group = (count + groups - 1) / groups;
  std::fill(args.workspace, args.workspace + groups * width, 0.0f);
  parallel_tasks(groups, [&](int64_t g) {
    TileRunner runner(plan, thread_scratch(args.scratch, floats));
    for (int64_t c = g * per_group; c < std::min(count, (g + 1) * per_group); ++c) {
      const RowChunk& chunk = chunks[c];
      EdgeTiles tiles(*args.edges, chunk.row_begin, runner);
      for (int64_t e = chunk.edge_begin; e < chunk.edge_end; e += plan.rows) {
        add_tile(runner, args, tiles.tile(e, std::min(chunk.edge_end, e + plan.rows)), false,
                 args.workspace + g * width);
      }
    }
  });
}

void sum_rows(const ColumnSumArgs& args, const TilePlan& plan, int64_t width) {
  const int64_t floats = scratch_floats(*args.program.program);
  const int64_t step = chunk_rows(args.rows);
  parallel_for(args.rows, step, [&](int64_t begin, int64_t end) {
    TileRunner runner(plan, thread_scratch(args.scratch, floats));
    for (int64_t first = begin; first < end; first += plan.rows) {
      Tile tile;
      tile.first = first;
      tile.rows = std::min(plan.rows, end - first);
      add_tile(runner, args, tile, first == begin, args.workspace + begin / step * width);
    }
  });
}

}  // namespace

void column_sum(const ColumnSumArgs& args) {
  const RowProgram& program = *args.program.program;
  const int64_t width = program.widths[args.value];
  if (args.rows <= 0) {
    std::fill(args.out, args.out + width, 0.0f);
    return;
  }
  PlanOptions options;
  options.keep = args.value;
  if (args.edges != nullptr) options.consecutive = consecutive(*args.edges);
  const TilePlan plan = make_tile_plan(args.program, options);
  if (args.edges != nullptr) {
    sum_edges(args, plan, width);
  } else {
    sum_rows(args, plan, width);
  }
  const Rows sums = {args.workspace, nullptr, width, width};
  RowSegment all;
  all.value = &sums;
  all.end = num_chunks(args.rows);
  all.sum = args.out;
  segment_functions().add(all);
}

}  // namespace nacre::cpu

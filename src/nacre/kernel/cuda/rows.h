// Kernels made of row programs: over vertices, over edges, and reduced over the edges of each row.
// After its struct of parameters each kernel takes the operands of its program, one pointer each,
// and then the operands of its tail.
#pragma once

#include <vector>

#include "nacre/kernel/cuda/params.h"
#include "nacre/kernel/direction.h"
#include "nacre/kernel/program.h"

namespace nacre::cuda {

// Says how the entries of a row find the ends of their edge. The row is at one end, the column at
// the other.
struct EdgeSide {
  bool rows_at_dst = true;
  bool edge_ids = false;      // the edges of the entries are listed; if not, entry i is edge i
  bool row_vertex = false;    // rows are pairs, and their vertices are listed
  bool long_offsets = false;  // offsets of rows are i64, not u32
  int64_t mean_degree = 8;    // decides how many threads share a row of few elements
};

struct ReduceSpec {
  const RowProgram* program = nullptr;
  int value = -1;
  ReduceOp reduce = ReduceOp::sum;
  bool store = true;        // writes the reduced rows
  bool narrow_out = false;  // writes the reduced rows as bf16
  bool argmax = false;
  const RowProgram* tail = nullptr;
  EdgeSide side;
  // If there are several tiles, wide rows are worked on in tiles of columns, one tile of all rows
  // after the other, so that the part of operand 0 that is gathered at a time fits the cache. The
  // program is as wide as a tile; operand 0 and the result have rows of `row_width`. Tiles that
  // together are wider than a row overlap, begin at multiples of 4 columns, and write the same
  // values where they overlap.
  int tiles = 1;
  int64_t row_width = 0;  // used if there are several tiles
  // If > 0, operand 0 is a copy in which the tiles of a row lie one after the other, this many
  // columns apart.
  int64_t tile_pitch = 0;
  // `batch` and `min_blocks` do not change a bit of the result. If `batch` is 0, a rule chooses it.
  // If `min_blocks` is 0, it sets no bound.
  int batch = 0;       // rows in flight
  int min_blocks = 0;  // blocks that a multiprocessor must hold, which bounds the registers
};
// Returns the first column of a tile. The last tile ends with the row.
int64_t tile_column(const ReduceSpec& spec, int tile);
// Returns the number of rows in flight that the rule chooses.
int reduce_batch(const ReduceSpec& spec);
// Returns the smallest number of entries for which a piece of a row gets a group of threads of its
// own.
int64_t reduce_shortest_piece(const ReduceSpec& spec);

// A kernel and how many units of work (rows, entries, segments) a block takes.
struct RowSource {
  Source source;
  int per_block = 1;
};

NACRE_PARAMS(MapParams, (i64, count), (i64, first), (const u64*, step));
// Runs the program over the rows [first, first + count).
RowSource map_source(const RowProgram& program);
NACRE_PARAMS(MapEdgesParams, (i64, count), (i64, first), (const u32*, col), (const u32*, edge_dst),
             (const u16*, edge_type), (const u64*, step));
// Runs the program over the edges [first, first + count), in in-CSR order.
RowSource map_edges_source(const RowProgram& program);
NACRE_PARAMS(MapListedEdgesParams, (i64, count), (const u32*, order), (i64, first), (const u32*, col),
             (const u32*, edge_dst), (const u16*, edge_type), (const u64*, step));
// Runs the program over the edges order[first], order[first + 1] … and writes their results to the
// rows 0, 1 …
RowSource map_listed_edges_source(const RowProgram& program);
// Units of work of a reduction, as they lie in device memory.
namespace reduction {
// A row, or a piece of a long row: the entries [begin, end). `partial` is the place for the sum of
// a piece; it is -1 if this is a whole row. `split` is the number of the row among the rows that
// are in pieces.
NACRE_STRUCT(Segment, (u32, row), (int, partial), (int, split), (int, unused), (i64, begin, end));
// A row that is in pieces. Their sums lie in `count` places from `first` on. `length` is the number
// of entries of the whole row.
NACRE_STRUCT(SplitRow, (int, first, count, length, unused));
NACRE_PARAMS(ReduceParams, (const Segment* __restrict__, segments), (i64, listed), (i64, first_row),
             (const Offset* __restrict__, offsets), (i64, longest), (i64, count),
             (const SplitRow* __restrict__, split_rows), (int*, counters), (const u32* __restrict__, col),
             (const u32* __restrict__, edge_id), (const u16* __restrict__, edge_type),
             (const u32* __restrict__, row_vertex), (const u64* __restrict__, step), (Out*, out), (int*, argmax),
             (float*, partials), (i64, num_partials));
}  // namespace reduction
using reduction::ReduceParams;
// Reduces the entries of each row to one row. A tile has `count` units of work. The first `listed`
// units are segments; the others are the rows first_row, first_row + 1 …, whose entries lie between
// their offsets. Of these rows, those with more than `longest` entries are skipped, because their
// pieces are among the segments. `counters` has num_partials ints for each tile, which are 0 before
// and after the launch.
RowSource reduce_source(const ReduceSpec& spec);
NACRE_PARAMS(SoftmaxParams, (const i64* __restrict__, row_ptr), (const u32* __restrict__, order), (i64, count),
             (const u32* __restrict__, col), (const u16* __restrict__, edge_type), (const u64* __restrict__, step),
             (float*, out));
// Computes the softmax over the entries of the rows order[0], order[1] … With `whole_block`, a
// block works on one row; this is for long rows.
RowSource softmax_source(const RowProgram& program, int value, int64_t mean_degree, bool whole_block);
NACRE_PARAMS(SoftmaxGradParams, (const float* __restrict__, y));
// Computes the gradient of the softmax. Takes SoftmaxParams, then SoftmaxGradParams.
RowSource softmax_grad_source(const RowProgram& program, int value, int64_t mean_degree, bool whole_block);
NACRE_PARAMS(ColumnSumParams, (i64, count), (const u32*, col), (const u32*, edge_dst), (const u16*, edge_type),
             (const u64*, step), (float*, partials));
// Sums register `value` over all rows. Each block writes one row of partials, however many rows
// there are.
RowSource column_sum_source(const RowProgram& program, int value);
NACRE_PARAMS(ColumnTotalParams, (i64, blocks), (const float*, partials), (float*, out));
// Adds the partials of all blocks; each block works on one column.
RowSource column_total_source(int64_t width);

}  // namespace nacre::cuda

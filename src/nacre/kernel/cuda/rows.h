// Kernels made of row programs: over vertices, over edges, and reduced over the edges of each row. What a kernel takes
// is written at each function; operands follow as one pointer each, those of the tail last.
#pragma once

#include <vector>

#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cuda/source.h"
#include "nacre/kernel/program.h"

namespace nacre::cuda {

// How the entries of a row find the ends of their edge: the row is at one end, the column at the other.
struct EdgeSide {
  bool rows_at_dst = true;
  bool edge_ids = false;    // positions are listed (out-CSC, pairs); otherwise an entry's own number
  bool row_vertex = false;  // rows are pairs: their vertices are listed
  // Offsets of rows are i64, not u32.
  bool wide_offsets = false;
  int64_t mean_degree = 8;  // sets how many threads share a row of narrow values
};

struct ReduceSpec {
  const RowProgram* program = nullptr;
  int value = -1;
  cpu::Reduce reduce = cpu::Reduce::sum;
  bool store = true;        // write the reduced rows
  bool narrow_out = false;  // as bf16
  bool argmax = false;
  const RowProgram* tail = nullptr;
  EdgeSide side;
  // Wide rows in column tiles, tile after tile, so that what is gathered at one time fits the cache: the program is one
  // tile wide, operand 0 and the result have rows of `row_width`. Tiles that are wider than their share overlap, and
  // both write the same there; they begin at multiples of 4 columns then.
  int tiles = 1;
  int64_t row_width = 0;   // with tiles
  int64_t tile_pitch = 0;  // > 0: columns from one tile of operand 0 to the next, in rows of nothing but tiles
  // Neither changes a bit of the result; 0: by rule.
  int batch = 0;       // rows in flight
  int min_blocks = 0;  // blocks a multiprocessor must hold: bounds the registers
};
int64_t tile_column(const ReduceSpec& spec, int tile);  // where it begins: the last one ends with the row
int reduce_batch(const ReduceSpec& spec);               // by rule
// Entries of a row that are worth a group of threads of their own.
int64_t reduce_shortest_piece(const ReduceSpec& spec);

// A kernel and how many units of work (rows, entries, segments) a block takes.
struct RowSource {
  Source source;
  int per_block = 1;
};

// (rows, first, step, operands): rows first, first + 1 …
RowSource map_source(const RowProgram& program);
// (edges, col, edge_dst, edge_type, step, operands): all edges in in-CSR order
RowSource map_edges_source(const RowProgram& program);
// (count, order, first, col, edge_dst, edge_type, step, operands): edges order[first …], results in rows 0 …
RowSource map_listed_edges_source(const RowProgram& program);
// (segments, listed, offsets, longest, count, split_rows, counters, col, edge_id, edge_type, row_vertex, step, out,
// argmax, partials, num_partials, operands, tail's). A tile has `count` units of work: the first `listed` are
// segments, the others rows 0, 1 … with their entries between offsets, but for those of more than `longest` entries,
// whose pieces are listed. counters: num_partials ints for each tile, 0 before and after.
RowSource reduce_source(const ReduceSpec& spec);
// (row_ptr, order, count, col, edge_type, step, out, operands): softmax over the rows order[0 …]; `whole_block`: a
// block takes a row, for long ones
RowSource softmax_source(const RowProgram& program, int value, int64_t mean_degree, bool whole_block);
// (row_ptr, order, count, col, edge_type, step, out, y, operands)
RowSource softmax_grad_source(const RowProgram& program, int value, int64_t mean_degree, bool whole_block);
// (count, col, edge_dst, edge_type, step, partials, operands): one row of partials a block, whatever rows there are
RowSource column_sum_source(const RowProgram& program, int value);
// (blocks, partials, out), one block a column
RowSource column_total_source(int64_t width);

}  // namespace nacre::cuda

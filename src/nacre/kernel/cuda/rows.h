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
  int64_t mean_degree = 8;  // sets how many threads share a row of narrow values
};

struct ReduceSpec {
  const RowProgram* program = nullptr;
  int value = -1;
  cpu::Reduce reduce = cpu::Reduce::sum;
  bool store = true;  // write the reduced rows
  bool argmax = false;
  const RowProgram* tail = nullptr;
  EdgeSide side;
};

// A kernel and how many units of work (rows, entries, segments) a block takes.
struct RowSource {
  Source source;
  int per_block = 1;
};

// (rows, step, operands)
RowSource map_source(const RowProgram& program);
// (edges, col, edge_dst, edge_type, step, operands): all edges in in-CSR order
RowSource map_edges_source(const RowProgram& program);
// (count, order, first, col, edge_dst, edge_type, step, operands): edges order[first …], results in rows 0 …
RowSource map_listed_edges_source(const RowProgram& program);
// (segments, count, col, edge_id, edge_type, row_vertex, step, out, argmax, partials, num_partials, operands, tail's)
RowSource reduce_source(const ReduceSpec& spec);
// (split_rows, count, step, out, argmax, partials, num_partials, operands, tail's): adds up the pieces of long rows
RowSource reduce_pieces_source(const ReduceSpec& spec);
// (row_ptr, rows, col, edge_type, step, out, operands)
RowSource softmax_source(const RowProgram& program, int value, int64_t mean_degree);
// (row_ptr, rows, col, edge_type, step, out, y, operands)
RowSource softmax_grad_source(const RowProgram& program, int value, int64_t mean_degree);
// (count, col, edge_dst, edge_type, step, partials, operands): one row of partials a block, whatever rows there are
RowSource column_sum_source(const RowProgram& program, int value);
// (blocks, partials, out), one block a column
RowSource column_total_source(int64_t width);

}  // namespace nacre::cuda

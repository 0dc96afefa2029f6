// Sources of LSTMs over the neighbours of each row (dfg/op.h: lstm). The gates are i, f, g, o in
// this order; the column of a gate and a unit is gate · H + unit.
//
// There are two kinds of kernels, and the plan says which one runs (plan/variants/lstm.h). In the
// first kind, a group of threads runs a sequence by itself: a thread has one unit, with its columns
// of the recurrent matrix in registers, and the states pass through shared memory. This kind has at
// most kLstmGroupHidden units. In the second kind, a block runs a tile of sequences and reads the
// matrix from shared memory, or from the caches if it does not fit.
//
// Rows are taken in an order, the longest first. The values that a backward pass needs of a step
// lie at the entry of the step: the entries of a row are consecutive, and rows follow in their
// order.
#pragma once

#include "nacre/kernel/cuda/segments.h"

namespace nacre::cuda {

// The most units of an LSTM whose sequences each have a group of threads.
inline constexpr int64_t kLstmGroupHidden = 32;

struct LstmShape {
  int64_t hidden = 0;
  bool in_tiles = false;            // a block runs a tile of sequences
  bool on_edges = false;            // z and dz have a row for each edge, not for each vertex
  int64_t shared_bytes = 48 << 10;  // bytes of shared memory that a block may have
};
// Returns how many rows a block works on.
int64_t lstm_rows_of_block(const LstmShape& shape, bool backward);

// The parameters that come first for lstm_forward() and lstm_backward(). A launch works on the rows
// [first, first + count) of the order. The gates of the row at a position begin at the entry
// entry[position] - entry[first].
NACRE_PARAMS(LstmRunParams, (const float* __restrict__, w), (const u32* __restrict__, order),
             (const i64* __restrict__, row_ptr), (const i64* __restrict__, entry), (float* __restrict__, gates),
             (i64, first), (i64, count));
NACRE_PARAMS(LstmForwardParams, (const float* __restrict__, z), (const u32* __restrict__, col),
             (float* __restrict__, h_before), (float* __restrict__, c_before), (float* __restrict__, out));
// Runs the forward pass. If `keep`, the kernel stores the gates [4H] after their functions and the
// states [H] before each step; otherwise it stores the last states in out [rows, H].
Source lstm_forward(const LstmShape& shape, bool keep);
NACRE_PARAMS(LstmBackwardParams, (const float* __restrict__, g), (const float* __restrict__, c_before),
             (float* __restrict__, dz));
// Runs the backward pass, which replaces the gates by their gradients. `dz` is written only if z
// has a row for each edge. `w` lies as in the forward pass, but with `shape.in_tiles` it is
// transposed, [4H, H].
Source lstm_backward(const LstmShape& shape);

NACRE_PARAMS(AddRowsParams, (const float* __restrict__, from), (const Segment* __restrict__, items),
             (const u32* __restrict__, rows), (float* __restrict__, partials), (float* __restrict__, to), (i64, count));
// Adds rows of `from` to rows of `to`, one warp for each item. An item with entries i adds the rows
// rows[i], or the rows i if `rows` is null, to row item.row of `to`. If the item is a piece, its
// sum is written to its row of partials instead.
Source add_rows(int64_t width);
int64_t add_rows_of_block();

}  // namespace nacre::cuda

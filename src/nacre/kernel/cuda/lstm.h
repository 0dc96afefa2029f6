// Sources of LSTMs over the neighbours of each row (dfg/op.h: lstm). Gates stand as i, f, g, o; column gate · H + unit.
//
// Up to kLstmGroupHidden units, a group of threads runs a sequence by itself: a thread has a unit, with its columns of
// the recurrent matrix in registers, and the states pass through shared memory. Wider ones run in tiles of rows by
// blocks that read the matrix from shared memory, or where it does not fit from the caches.
//
// Rows come in an order (longest first); what a backward pass needs of each step lies at its entry: a row's entries
// follow on each other, rows in their order.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

inline constexpr int64_t kLstmGroupHidden = 32;

struct LstmShape {
  int64_t hidden = 0;
  bool on_edges = false;            // z (and dz) has a row for each edge, not for each vertex
  int64_t shared_bytes = 48 << 10;  // most a block can have
};
// Rows a block works on.
int64_t lstm_rows_of_block(const LstmShape& shape, bool backward);

NACRE_PARAMS(LstmForwardParams, (const float* __restrict__, z), (const float* __restrict__, w),
             (const u32* __restrict__, order), (const i64* __restrict__, row_ptr), (const u32* __restrict__, col),
             (const i64* __restrict__, entry), (float* __restrict__, gates), (float* __restrict__, h_before),
             (float* __restrict__, c_before), (float* __restrict__, out), (i64, first), (i64, count));
// Rows [first, first + count) of the order. `keep`: gates [4H] after their functions and the states [H] before each
// step are stored at entry[position] - entry[first] on; otherwise out [rows, H] gets the last states.
Source lstm_forward(const LstmShape& shape, bool keep);
NACRE_PARAMS(LstmBackwardParams, (const float* __restrict__, g), (const float* __restrict__, w),
             (const u32* __restrict__, order), (const i64* __restrict__, row_ptr), (const i64* __restrict__, entry),
             (float* __restrict__, gates), (const float* __restrict__, c_before), (float* __restrict__, dz),
             (i64, first), (i64, count));
// Gates become their gradients. `dz` is written on edges only. `w` lies as in the forward pass; in tiles it is
// transposed, [4H, H].
Source lstm_backward(const LstmShape& shape);
inline bool lstm_in_tiles(int64_t hidden) { return hidden > kLstmGroupHidden; }

NACRE_PARAMS(AddRowsParams, (const float* __restrict__, from), (const Segment* __restrict__, items),
             (const u32* __restrict__, slot), (float* __restrict__, partials), (float* __restrict__, to), (i64, count));
// to[item.row] += the sum of the rows slot[i] of `from` over the item's i; where `slot` is null, of the rows i. The sum
// of a piece goes to its row of partials instead. One warp for each item.
Source add_rows(int64_t width);
int64_t add_rows_of_block();

}  // namespace nacre::cuda

// Sources of LSTMs over the neighbours of each row (dfg/op.h: lstm). Gates stand as i, f, g, o; column gate · H + unit.
//
// Up to kLstmGroupHidden units, a group of threads runs a sequence by itself: a thread has a unit, with its columns of
// the recurrent matrix in registers, and the states pass through shared memory. Wider ones run in tiles of rows by
// blocks that read the matrix from shared memory, or where it does not fit from the caches.
//
// Rows come in an order (longest first); what a backward pass needs of each step lies at its entry: a row's entries
// follow on each other, rows in their order.
#pragma once

#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

inline constexpr int64_t kLstmGroupHidden = 32;

struct LstmShape {
  int64_t hidden = 0;
  bool on_edges = false;            // z (and dz) has a row for each edge, not for each vertex
  int64_t shared_bytes = 48 << 10;  // most a block can have
};
// Rows a block works on.
int64_t lstm_rows_of_block(const LstmShape& shape, bool backward);

// lstm_forward(z, w, order, row_ptr, col, entry, gates, h_before, c_before, out, first: int64, count: int64), rows
// first … of the order. `keep`: gates [4H] after their functions and the states [H] before each step are stored at
// entry[position] - entry[first] on; otherwise out [rows, H] gets the last states.
Source lstm_forward(const LstmShape& shape, bool keep);
// lstm_backward(g, w, order, row_ptr, entry, gates, c_before, dz, first, count): gates become their gradients. dz: only
// on edges, otherwise unused. w: as it lies; in tiles, transposed [4H, H].
Source lstm_backward(const LstmShape& shape);
inline bool lstm_in_tiles(int64_t hidden) { return hidden > kLstmGroupHidden; }

// add_rows(from, items, slot or null, partials, to, count: int64): to[item.row] += Σ rows slot[i] (null: i) of `from`
// over the item's i; a piece's sum goes to its row of partials instead. An item a warp.
Source add_rows(int64_t width);
int64_t add_rows_of_block();

}  // namespace nacre::cuda

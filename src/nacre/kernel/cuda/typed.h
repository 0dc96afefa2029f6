// Sources around typed products. A slot is what a (vertex, type) pair's row of a matrix is called: slot vertex · types
// + type where a matrix has a place for every type of every vertex (absent pairs are rows of zeros), or simply the
// pair's number.
#pragma once

#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

// How the threads of a group hold a row: `vector` floats at a time, vector c of a thread being number
// (tile · slots + c) · lanes + lane; a row wider than a tile is worked on by several groups.
struct RowSplit {
  int vector = 1;
  int lanes = 8;
  int slots = 1;
  int tiles = 1;
};
// About that many tiles, or as many as a group of threads needs.
RowSplit split_row(int64_t width, int64_t tiles = 1);

// Where row r of a matrix lies: (r / per_row) · ld + (r % per_row) · width.
struct RowPlace {
  int64_t per_row = 1;
  int64_t ld = 0;  // 0: the width
};

inline constexpr uint32_t kNoRow = 0xffffffffu;  // in maps of rows: none

struct TypedSum {
  int64_t width = 0;
  bool scaled = false;  // rows times one number of their edge
  bool bf16 = false;    // stored as bf16
  RowPlace out;
  int64_t tiles = 1;   // of columns, worked on one after another
  int64_t length = 0;  // of rows of x and of partials, where they are longer than `width`
};
inline int64_t length_of(const TypedSum& what) { return what.length == 0 ? what.width : what.length; }
// Σ over the edges of pairs of rows of x. typed_sum(x, other, edge or null, scale, pair_of, slot_of or null, items,
// num_items: int64, partials, out, first: int64): `scale` by edge, or without them by entry; an item is a run of
// entries, a piece of a pair, whose sum goes to its row of partials, or whole pairs, whose sums go to rows pair −
// item.row (with slot_of: slot_of[pair] − first) of out. pair_of: the pair of every entry. num_items · tiles groups,
// typed_groups_of_block a block.
Source typed_sum(const TypedSum& what);
// typed_join(partials, rows, num_rows: int64, out): adds the pieces of each pair that came in pieces. num_rows · tiles
// groups.
Source typed_join(const TypedSum& what);
// zero_rows(rows, count: int64, out): those rows of out become zeros. count · tiles groups.
Source zero_rows(const TypedSum& what);
int64_t typed_groups_of_block(int64_t width, int64_t tiles = 1);

struct CopyRows {
  int64_t width = 0;
  bool bf16 = false;  // stored as bf16
  RowPlace in, out;
};
// copy_rows(x, map_in or null, first_in: int64, out, map_out or null, first_out: int64, count: int64): row first_in +
// i, looked up in map_in, to row first_out + i, looked up in map_out. No row to read from: zeros; none to write to:
// nothing. kCopyBatch rows a group, count · tiles / kCopyBatch groups (rounded up in rows).
Source copy_rows(const CopyRows& what);
inline constexpr int64_t kCopyBatch = 4;

// sum_pairs(p, vertex_ptr, pair, type, shift or null, out, first: int64, count: int64): out[first + i] = Σ of the rows
// of p of the vertex's pairs; a pair's row is its number less shift[type]. count · tiles groups.
Source sum_pairs(int64_t width);

enum class Arrange : uint8_t {
  keep,   // as they are
  split,  // [T, K, N] to [K, T · N]
  join,   // [K, T · N] to [T, K, N]
  flip,   // [T, K, N] to [T, N, K]
};
// arrange_weights(from, to), a thread for each of the T · K · N elements. `ld` (keep, flip): length of the rows of
// `to`, filled up with zeros; 0: none are.
Source arrange_weights(Arrange how, int64_t types, int64_t k, int64_t n, bool bf16, int64_t ld = 0);

}  // namespace nacre::cuda

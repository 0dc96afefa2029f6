// Sources around typed products. The row of a matrix that belongs to a (vertex, type) pair is
// called its cell. If the matrix has a place for every type of every vertex, the cell is row vertex
// · types + type, and rows of absent pairs are zeros. If the matrix has a row for each pair only,
// the cell is the number of the pair.
#pragma once

#include "nacre/kernel/cuda/segments.h"

namespace nacre::cuda {

// How the threads of a group hold a row: in vectors of `vector` floats. Vector c of a thread is
// vector number (tile · vectors + c) · lanes + lane of the row. Several groups work on a row that
// is wider than a tile.
struct RowSplit {
  int vector = 1;
  int lanes = 8;
  int vectors = 1;
  int tiles = 1;
};
// Returns a split into about `tiles` tiles, or into more if a group of threads cannot hold one.
RowSplit split_row(int64_t width, int64_t tiles = 1);

// Says where row r of a matrix lies: at (r / per_row) · ld + (r % per_row) · width.
struct RowPlace {
  int64_t per_row = 1;
  int64_t ld = 0;  // 0 stands for the width
};

inline constexpr uint32_t kNoRow = 0xffffffffu;  // stands for "no row" in maps of rows

struct TypedSum {
  int64_t width = 0;
  bool scaled = false;  // each row is multiplied by one number of its edge
  bool bf16 = false;    // sums are stored as bf16
  RowPlace out;
  int64_t tiles = 1;   // tiles of columns, worked on one after another
  int64_t length = 0;  // length of the rows of x and of partials; 0 stands for the width
};
inline int64_t length_of(const TypedSum& what) { return what.length == 0 ? what.width : what.length; }
NACRE_PARAMS(TypedSumParams, (const float* __restrict__, x), (const u32* __restrict__, other),
             (const u32* __restrict__, edge), (const float* __restrict__, scale), (const u32* __restrict__, pair_of),
             (const u32* __restrict__, cell_of), (const Segment* __restrict__, items), (i64, num_items),
             (float* __restrict__, partials), (Out* __restrict__, out), (i64, first));
// Sums rows of x over the edges of each pair. `scale` lies by edge or, if `edge` is null, by entry.
// `pair_of` is the pair of every entry. An item is a run of entries: a piece of a pair, whose sum
// goes to its row of partials, or whole pairs, whose sums go to rows pair − item.row of out, or to
// rows cell_of[pair] − first if `cell_of` is not null. The kernel is launched with num_items ·
// tiles groups of threads, typed_groups_of_block() of them in a block.
Source typed_sum(const TypedSum& what);
NACRE_PARAMS(TypedJoinParams, (const float* __restrict__, partials), (const SplitRow* __restrict__, rows),
             (i64, num_rows), (Out* __restrict__, out));
// Adds the sums of the pieces of each pair that was summed in pieces. The kernel is launched with
// num_rows · tiles groups of threads.
Source typed_join(const TypedSum& what);
NACRE_PARAMS(ZeroRowsParams, (const u32* __restrict__, rows), (i64, count), (Out* __restrict__, out));
// Writes zeros to the listed `rows` of out. The kernel is launched with count · tiles groups of
// threads.
Source zero_rows(const TypedSum& what);
int64_t typed_groups_of_block(int64_t width, int64_t tiles = 1);

struct CopyRows {
  int64_t width = 0;
  bool bf16 = false;  // rows are stored as bf16
  RowPlace in, out;
};
NACRE_PARAMS(CopyRowsParams, (const float* __restrict__, x), (const u32* __restrict__, map_in), (i64, first_in),
             (Out* __restrict__, out), (const u32* __restrict__, map_out), (i64, first_out), (i64, count));
// Copies row first_in + i, looked up in map_in, to row first_out + i, looked up in map_out. If a
// map is null, numbers of rows are not looked up in it. If map_in gives kNoRow, zeros are written;
// if map_out does, nothing is written. A group of threads copies kCopyBatch rows, so count · tiles
// / kCopyBatch groups are launched (rounded up in rows).
Source copy_rows(const CopyRows& what);
inline constexpr int64_t kCopyBatch = 4;

NACRE_PARAMS(SumPairsParams, (const float* __restrict__, p), (const i64* __restrict__, vertex_ptr),
             (const u32* __restrict__, pair), (const u16* __restrict__, type), (const i64* __restrict__, shift),
             (float* __restrict__, out), (i64, first), (i64, count));
// Computes out[first + i] = the sum of the rows of p that belong to the pairs of vertex first + i.
// The row of a pair is its number less shift[type], or its number if `shift` is null. The kernel is
// launched with count · tiles groups of threads.
Source sum_pairs(int64_t width);

enum class Arrange : uint8_t {
  keep,   // leaves the order as it is
  split,  // [T, K, N] to [K, T · N]
  join,   // [K, T · N] to [T, K, N]
  flip,   // [T, K, N] to [T, N, K]
};
NACRE_PARAMS(ArrangeWeightsParams, (const float* __restrict__, from), (Out* __restrict__, to));
// Writes the weights in another order, one of the T · K · N elements in each thread. `ld` is the
// length of the rows of `to`, which are filled up with zeros (keep and flip only); 0 means that
// they are not filled up.
Source arrange_weights(Arrange how, int64_t types, int64_t k, int64_t n, bool bf16, int64_t ld = 0);

}  // namespace nacre::cuda

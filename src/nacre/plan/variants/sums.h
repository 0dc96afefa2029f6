// Variants of sums over gathered rows on a GPU.
#pragma once

#include "nacre/plan/variants.h"

namespace nacre {

// A weighted sum of rows over neighbours (spmm).
struct SpmmFacts {
  int64_t read = 0;  // rows that are gathered from
  int64_t width = 0;
  int64_t heads = 1;
  int64_t mean_degree = 0;
  bool narrow = false;       // the rows lie in memory as bf16
  bool weighted = false;     // each edge has a weight
  bool other_order = false;  // the sum walks the edges in another order than their own
};
SpmmFacts spmm_facts(const PlannedKernel& k);

// Tiles of columns: where rows are read many times over but do not fit the cache together, a tile
// of their columns does.
struct ColumnTiles {
  int count = 1;
  int64_t width = 0;  // of one tile
  // Floats from one tile of a row to the next in a copy of the rows; 0 if rows are read where they
  // lie.
  int64_t pitch = 0;
};
enum class SpmmTiles { copied, in_place, none };
const VariantList<SpmmFacts>& spmm_tile_variants();
// Returns the tiles that a variant of that list means.
ColumnTiles column_tiles(const SpmmFacts& facts, SpmmTiles way);

// Weights read one by one where rows are gathered each cost a sector of memory in the way of the
// rows.
enum class SpmmWeights { in_order_of_walk, as_they_lie };
const VariantList<SpmmFacts>& spmm_weight_variants();

// A reduction over edges (spmm, reduce, gtask): rows in flight for each group of threads against
// warps in flight. Which is faster depends on the device and on the graph, and neither changes a
// bit.
struct RowShapeFacts {
  double gathered = 0;  // numbers that are gathered
  // Rows in flight of the usual kernel; 0: not known before the kernel is bound.
  int batch = 0;
};
RowShapeFacts row_shape_facts(const PlannedKernel& k);
enum class RowShape { more_warps, more_rows };
const VariantList<RowShapeFacts>& row_shape_variants();

// Sums over the edges of pairs, whose rows come from the vertices at the other end.
struct PairSumFacts {
  int64_t edges = 0;
  int64_t others = 0;  // vertices at the other end
  int64_t width = 0;   // of a row
};
PairSumFacts pair_sum_facts(const PlannedKernel& k);
enum class PairSumTiles { tiles, none };
const VariantList<PairSumFacts>& pair_sum_variants();
// Returns the number of column tiles of the variant `tiles`.
int64_t tiles_of_pair_sum(const PairSumFacts& facts);
// The rows that such a sum reads: copied first to rows whose length is a whole number of vectors,
// so that they can be read in vectors, or read where they lie.
enum class PairSumRows { copied, in_place };
const VariantList<PairSumFacts>& pair_row_variants();
// Returns the length in floats of the rows that a variant of that list reads.
int64_t pair_row_length(const PairSumFacts& facts, PairSumRows way);

}  // namespace nacre

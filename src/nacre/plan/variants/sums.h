// Variants of sums over gathered rows on a GPU.
#pragma once

#include "nacre/plan/variants.h"

namespace nacre {

// If each row is read at least this often on average, tiles of columns save more time than it costs
// to walk the edges once for each tile.
inline constexpr int64_t kReadOften = 64;

// The numbers that decide about a weighted sum of rows over neighbours (spmm).
struct SpmmFacts {
  int64_t read = 0;   // number of rows that the sum reads from
  int64_t width = 0;  // columns of a row
  int64_t heads = 1;
  int64_t mean_degree = 0;
  bool narrow = false;            // the rows lie in memory as bf16
  bool weighted = false;          // each edge has a weight
  bool constant_weights = false;  // the weights are computed once
  bool dots = false;              // whether the sum also computes dot products for each edge
  // Whether the sum walks the edges in another order than that of their numbers.
  bool other_order = false;
  double edges = 0;
  int64_t rows = 0;  // rows of the result
  // Whether the edges of a row come in the order of the numbers that the vertices they read have in
  // the whole graph.
  bool ordered = false;
};
SpmmFacts spmm_facts(const PlannedKernel& k);

// The decision `columns`: where rows are read many times but do not fit into the cache together,
// the sum is computed for one tile of columns after the other, because the columns of one tile do
// fit. The tiles are read where the rows lie, or from a copy in which each tile begins with a
// memory line. Tiles of only one line or half a line are for devices that share their cache
// with others. They walk the edges more often, so they are taken only if that is predicted to be
// faster, or if a plan file names them.
struct ColumnTiles {
  int count = 1;
  int64_t width = 0;  // number of columns of one tile
  // Floats from one tile of a row to the next in a copy of the rows; 0 if rows are read where they
  // lie.
  int64_t pitch = 0;
};
enum class SpmmTiles { copied, in_place, line, half_line, none };
const VariantList<SpmmFacts>& spmm_tile_variants();
// Returns the tiles that a variant of the decision `columns` means.
ColumnTiles column_tiles(const SpmmFacts& facts, SpmmTiles way);

// The decision `sources`, only on devices that share their cache: the vertices whose rows a sum
// reads are divided into blocks whose rows fit into the cache. All rows of the result first sum
// over their edges to the first block, then over those to the second block, and so on. The sums of
// the blocks are added at the end.
struct SourceFacts {
  SpmmFacts sum;
  ColumnTiles tiles;
};
const VariantList<SourceFacts>& spmm_source_variants();
// Returns the number of blocks of a variant of the decision `sources`; 1 means that all rows are
// summed at once.
int source_blocks(int variant);

// The decision `weights`: a sum that walks the edges in another order than the weights lie in reads
// a whole sector of memory (32 bytes) for each weight. A copy of the weights in the order of the
// walk avoids this. The copy of weights that never change is made once and kept.
enum class SpmmWeights { kept_in_order_of_walk, in_order_of_walk, as_they_lie };
const VariantList<SpmmFacts>& spmm_weight_variants();

// The decision `in flight`, for reductions over edges (spmm, reduce, gtask): each group of threads
// reads several rows at the same time, or fewer rows, so that more warps fit on the device. Which
// is faster depends on the device and on the graph. The bits of the result are the same.
struct RowShapeFacts {
  double gathered = 0;  // numbers that the kernel reads
  // Rows that a group of the usual kernel reads at the same time; 0: not known before the kernel is
  // bound.
  int batch = 0;
};
RowShapeFacts row_shape_facts(const PlannedKernel& k);
enum class RowShape { more_warps, more_rows };
const VariantList<RowShapeFacts>& row_shape_variants();

// The numbers that decide about sums over the edges of pairs. The rows that are summed are those of
// the vertices at the other ends of the edges.
struct PairSumFacts {
  int64_t edges = 0;
  int64_t others = 0;             // number of vertices at the other end
  int64_t width = 0;              // columns of a row
  bool weighted = false;          // each edge has a weight
  bool constant_weights = false;  // the weights are computed once
  bool once = false;              // the sums are computed once
  // Whether a kernel that runs in every step sums over the edges of pairs at the same end.
  bool others_in_steps = false;
};
PairSumFacts pair_sum_facts(const PlannedKernel& k);
// The decision `columns of pairs' sums`: the sums are computed for one tile of columns after the
// other, as with the decision `columns`, or for whole rows.
enum class PairSumTiles { tiles, none };
const VariantList<PairSumFacts>& pair_sum_variants();
// Returns the number of column tiles of the variant `tiles`.
int64_t tiles_of_pair_sum(const PairSumFacts& facts);
// The decision `rows of pairs' sums`: the rows that a sum over the edges of pairs reads are copied
// first to rows whose length is a whole number of vectors, so that they can be read in vectors, or
// they are read where they lie.
enum class PairSumRows { copied, in_place };
const VariantList<PairSumFacts>& pair_row_variants();
// Returns the length in floats of the rows that a variant of the decision `rows of pairs' sums`
// reads.
int64_t pair_row_length(const PairSumFacts& facts, PairSumRows way);
// The decision `edges of pairs' sums`: the lists of the edges, in the order of the pairs, are
// brought to the workspace for a sum that runs once, or they stay on the device.
enum class PairSumEdges { brought_once, kept };
const VariantList<PairSumFacts>& pair_edge_variants();
// The decision `weights of pairs' sums`: weights that never change are kept in the order of the
// pairs, or they are read as they lie.
enum class PairSumWeights { in_order_of_pairs, as_they_lie };
const VariantList<PairSumFacts>& pair_weight_variants();
// The decision `long pairs`: a pair of more edges than the limit is cut into pieces of two thirds
// as many edges, and the sums of the pieces are added in order. Each piece has a group of threads.
enum class LongPairs { in_pieces, whole };
const VariantList<PairSumFacts>& long_pair_variants();
// Returns the edges of a piece if pairs of more edges than `limit` are cut.
int64_t piece_of_pair(int64_t limit);
// Returns whether a kernel sums over the edges of the pairs at one end.
bool sums_edges_of_pairs(const Kernel& kernel, const Dfg& dfg, End end);

}  // namespace nacre

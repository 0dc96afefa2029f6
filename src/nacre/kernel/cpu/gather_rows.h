// Functions of the typed and LSTM kernels that move rows: they gather rows into a tile in cache,
// summed or one by one, and add the rows of a tile back. They run on the calling thread and
// prefetch rows before they are needed.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"

namespace nacre::cpu {

// Sum i is Σ scale[edge_id[e]] · x[col[e]] over the entries e in [ptr[i], ptr[i + 1]). With scale
// null, every scale is 1. Long sums are computed in short pieces that are added in order, so that
// the rounding error does not grow with the degree of a hub.
struct RowSums {
  const int64_t* ptr = nullptr;
  const NodeId* col = nullptr;
  const EdgeId* edge_id = nullptr;  // only read if scale is given
  const float* scale = nullptr;
  int64_t entries = 0;  // number of readable entries of col, for prefetching beyond the last sum
};

// Computes out[i - begin] = sum i for the sums [begin, end).
void gather_sum(const RowSums& sums, int64_t begin, int64_t end, const float* x, int64_t width, float* out);

// Computes out[rows[i]] += sum i for the sums [begin, end).
struct RowSumsInto {
  RowSums sums;
  const NodeId* rows = nullptr;
};
void gather_sum_add(const RowSumsInto& into, int64_t begin, int64_t end, const float* x, int64_t width, float* out);

// A run of `count` row numbers. `ahead` more row numbers can be read after the run; their rows are
// prefetched towards the end of the run.
struct RowList {
  const NodeId* rows = nullptr;
  int64_t count = 0;
  int64_t ahead = 0;
};
// Copies rows: out[i] = x[rows[i]].
void gather_copy(const RowList& list, const float* x, int64_t width, float* out);
// Adds rows: out[rows[i]] += tile[i]. A row may occur more than once in the list.
void scatter_add(const RowList& list, const float* tile, int64_t width, float* out);

}  // namespace nacre::cpu

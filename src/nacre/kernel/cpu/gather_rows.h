// Row movers of the typed and LSTM kernels: gather rows into a tile in cache, summed or one by one,
// and add a tile's rows back. On the calling thread; rows of other entries are prefetched ahead of
// use.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"

namespace nacre::cpu {

// Sum i runs over entries [ptr[i], ptr[i + 1]): Σ scale[edge_id[e]] · x[col[e]]; scale null = 1.
// Long sums are taken in short pieces, in order, so the rounding error does not grow with a hub's
// degree.
struct RowSums {
  const int64_t* ptr = nullptr;
  const NodeId* col = nullptr;
  const EdgeId* edge_id = nullptr;  // read with scale only
  const float* scale = nullptr;
  int64_t entries = 0;  // readable entries of col, for prefetching past the last sum
};

// out[i - begin] = sum i.
void gather_sum(const RowSums& sums, int64_t begin, int64_t end, const float* x, int64_t width, float* out);

// out[rows[i]] += sum i, for sums [begin, end).
struct RowSumsInto {
  RowSums sums;
  const NodeId* rows = nullptr;
};
void gather_sum_add(const RowSumsInto& into, int64_t begin, int64_t end, const float* x, int64_t width, float* out);

// A run of row numbers; `ahead` more are readable behind it, and are prefetched towards the end of
// the run.
struct RowList {
  const NodeId* rows = nullptr;
  int64_t count = 0;
  int64_t ahead = 0;
};
// out[i] = x[rows[i]].
void gather_copy(const RowList& list, const float* x, int64_t width, float* out);
// out[rows[i]] += tile[i]; a row may be named more than once.
void scatter_add(const RowList& list, const float* tile, int64_t width, float* out);

}  // namespace nacre::cpu

// The single-threaded core of spmm: one set of functions for each instruction set, chosen at run
// time.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"

namespace nacre::cpu {

// Computes the packed rows [0, rows) of `out`: out[r] is the sum of weight · x[col] over the
// entries from row_ptr[r] up to row_ptr[r + 1].
struct SpmmRows {
  const int64_t* row_ptr = nullptr;
  const NodeId* col = nullptr;
  const EdgeId* edge_id = nullptr;  // the value of RowView::edge_id
  const float* x = nullptr;
  const float* weight = nullptr;  // null: every weight is 1
  int64_t width = 0;
  int64_t heads = 1;
  bool mean = false;
  int64_t rows = 0;
  int64_t fetch_end = 0;  // entries before this one may be prefetched
  float* out = nullptr;
  // Whether `out` is not read again soon. Its aligned rows are then written past the caches.
  bool stream = false;
};

void spmm_rows(const SpmmRows& rows);

// Computes, for each entry of row r and each head, the dot product of x[col] with the row at `own`
// + r · width, and writes it to the row of the entry's edge in `dots`.
void dot_rows(const SpmmRows& rows, const float* own, float* dots);

}  // namespace nacre::cpu

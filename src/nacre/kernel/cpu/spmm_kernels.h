// The single-threaded core of spmm, one set per instruction set, chosen at run time.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"

namespace nacre::cpu {

// Rows [0, rows) of `out`, packed: out[r] = Σ weight · x[col] over entries [row_ptr[r], row_ptr[r +
// 1]).
struct SpmmRows {
  const int64_t* row_ptr = nullptr;
  const NodeId* col = nullptr;
  const EdgeId* edge_id = nullptr;  // as in RowView
  const float* x = nullptr;
  const float* weight = nullptr;  // null = 1
  int64_t width = 0;
  int64_t heads = 1;
  bool mean = false;
  int64_t rows = 0;
  int64_t fetch_end = 0;  // entries before this one may be fetched early
  float* out = nullptr;
  // `out` is not read again soon: write around the caches where its rows are aligned
  bool stream = false;
};

void spmm_rows(const SpmmRows& rows);

}  // namespace nacre::cpu

// Sources of the statistics of columns and their gradient. A block sums a tile of 32 columns over a run of rows in
// double and leaves the sums in a slot of the run; a second launch adds the slots of each column in order.
#pragma once

#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

inline constexpr int64_t kMomentsColumns = 32;  // of a block

// Runs of rows: at least one, so that no rows give sums of 0.
int64_t moments_runs(int64_t rows);
int64_t moments_rows_of_run(int64_t rows);
inline int64_t moments_tiles(int64_t width) { return (width + kMomentsColumns - 1) / kMomentsColumns; }

enum class ColumnSums : uint8_t {
  values,   // x
  squares,  // (x - mean)²
  grads,    // g and g · (x - mean)
};
// Doubles of a run's slot for each column.
inline int64_t column_sums_width(ColumnSums kind) { return kind == ColumnSums::grads ? 2 : 1; }

// column_sums(x, g, mean, slots: double*, rows: int64, rows_of_run: int64): tiles · runs blocks. g: grads only; mean:
// squares and grads.
Source column_sums(ColumnSums kind, int64_t width);
// column_mean(slots, runs: int64, rows: int64, out: float*): out[c] = sum / rows, `tiles` blocks.
Source column_mean(int64_t width);
// grad_terms(slots, runs, rows, moments, epsilon: float, out: float*): [3, width] of 1/σ, mean(g), slope; `tiles`
// blocks.
Source standardize_grad_terms(int64_t width);
// standardize_grad(g, x, moments, terms, out, elements: int64), a thread for each element.
Source standardize_grad(int64_t width);

}  // namespace nacre::cuda

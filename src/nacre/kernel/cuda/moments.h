// Sources of the statistics of columns and of their gradient. A block of threads sums a tile of 32
// columns over a run of rows in double precision and writes the sums to the run's own place in the
// workspace. A second launch adds the sums of each column in order.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

inline constexpr int64_t kMomentsColumns = 32;  // columns that one block of threads sums

// Returns the number of runs of rows. It is at least one, so that the sums over no rows are 0.
int64_t moments_runs(int64_t rows);
int64_t moments_rows_of_run(int64_t rows);
inline int64_t moments_tiles(int64_t width) { return (width + kMomentsColumns - 1) / kMomentsColumns; }

enum class ColumnSums : uint8_t {
  values,   // sums of x
  squares,  // sums of (x - mean)²
  grads,    // sums of g and of g · (x - mean)
};
// Returns how many doubles a block of threads writes to the workspace for each column of a run of
// rows.
inline int64_t column_sums_width(ColumnSums kind) { return kind == ColumnSums::grads ? 2 : 1; }

// `g` is read for grads only, `mean` for squares and grads.
NACRE_PARAMS(ColumnSumsParams, (const float* __restrict__, x), (const float* __restrict__, g),
             (const float* __restrict__, mean), (double* __restrict__, places), (long long, rows),
             (long long, rows_of_run));
// Sums the columns over each run of rows. The kernel is launched with moments_tiles(width) ·
// moments_runs(rows) blocks.
Source column_sums(ColumnSums kind, int64_t width);
NACRE_PARAMS(ColumnMeanParams, (const double* __restrict__, places), (long long, runs), (long long, rows),
             (float* __restrict__, out));
// Computes out[c] = sum of column c / rows. The kernel is launched with moments_tiles(width)
// blocks.
Source column_mean(int64_t width);
NACRE_PARAMS(StandardizeTermsParams, (const double* __restrict__, places), (long long, runs), (long long, rows),
             (const float* __restrict__, moments), (float, epsilon), (float* __restrict__, out));
// Writes the rows 1/σ, mean(g) and slope to `out`, [3, width]. The kernel is launched with
// moments_tiles(width) blocks.
Source standardize_grad_terms(int64_t width);
NACRE_PARAMS(StandardizeGradParams, (const float* __restrict__, g), (const float* __restrict__, x),
             (const float* __restrict__, moments), (const float* __restrict__, terms), (float* __restrict__, out),
             (long long, elements));
// Computes the gradient of standardize, one element in each thread.
Source standardize_grad(int64_t width);

}  // namespace nacre::cuda

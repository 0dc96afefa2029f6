// Sources of the losses. A loss is summed in double precision: every block writes its sum to a
// place of its own, and a second launch of one block adds the sums in order. So the bits depend on
// the number of rows only.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

// Returns the number of blocks, and of sums, of the first launch of a loss.
int64_t loss_blocks(int64_t rows);

enum class LossKind : uint8_t { nll, bce };
struct LossShape {
  LossKind kind = LossKind::nll;
  int64_t classes = 0;
  double smoothing = 0;         // label smoothing (kernel/cpu/loss.h)
  bool weight_of_each = false;  // bce: one weight for each row and class instead of each row
};

// Labels are int32 class numbers (nll) or one byte for each row and class (bce).
NACRE_PARAMS(LossSumParams, (const float* __restrict__, x), (const Label* __restrict__, label),
             (const float* __restrict__, weight), (double* __restrict__, places), (long long, rows),
             (long long, rows_of_block));
// Each block sums the losses of its rows and writes the sum to its place. The kernel is launched
// with loss_blocks(rows) blocks.
Source loss_sum(const LossShape& loss);
NACRE_PARAMS(LossTotalParams, (const double* __restrict__, places), (long long, count), (float* __restrict__, out));
// Adds all sums in order. The kernel is launched with one block.
Source loss_total();
NACRE_PARAMS(LossGradParams, (const float* __restrict__, x), (const Label* __restrict__, label),
             (const float* __restrict__, weight), (const float* __restrict__, gradient), (float* __restrict__, out),
             (long long, elements));
// Computes the gradient of the loss, one element in each thread.
Source loss_grad(const LossShape& loss);
int64_t loss_rows_of_block(int64_t rows);

}  // namespace nacre::cuda

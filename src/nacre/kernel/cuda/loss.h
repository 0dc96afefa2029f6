// Sources of the losses. Scalars are summed in double: every block leaves its sum in a slot, a second launch of one
// block adds the slots in order, so the bits depend on the number of rows only.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

// Blocks (and slots) of the first launch of a loss.
int64_t loss_blocks(int64_t rows);

enum class LossKind : uint8_t { nll, bce };
struct LossShape {
  LossKind kind = LossKind::nll;
  int64_t classes = 0;
  double smoothing = 0;         // of the labels (kernel/cpu/loss.h)
  bool weight_of_each = false;  // bce: weights of rows × classes instead of rows
};

// Labels are int32 class numbers (nll) or one byte for each row and class (bce).
NACRE_PARAMS(LossSumParams, (const float* __restrict__, x), (const Label* __restrict__, label),
             (const float* __restrict__, weight), (double* __restrict__, slots), (long long, rows),
             (long long, rows_of_block));
// loss_blocks(rows) blocks. Each block leaves its sum in a slot.
Source loss_sum(const LossShape& loss);
NACRE_PARAMS(LossTotalParams, (const double* __restrict__, slots), (long long, count), (float* __restrict__, out));
// One block adds all slots.
Source loss_total();
NACRE_PARAMS(LossGradParams, (const float* __restrict__, x), (const Label* __restrict__, label),
             (const float* __restrict__, weight), (const float* __restrict__, gradient), (float* __restrict__, out),
             (long long, elements));
// One thread for each element.
Source loss_grad(const LossShape& loss);
int64_t loss_rows_of_block(int64_t rows);

}  // namespace nacre::cuda

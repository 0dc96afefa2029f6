// Source of an optimiser's step over pieces of parameters, one a block.
#pragma once

#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

inline constexpr int64_t kOptimizerPiece = 1024;  // elements, at most

// In device memory, as the kernel reads it.
struct OptimizerPiece {
  const float* gradient;
  int64_t offset;  // of its elements in parameters and moments
  int64_t size;
};
struct OptimizerNumbers {
  float lr, decay, decoupled, beta1, beta2, rest1, rest2, correction1, correction2, epsilon, momentum;
  int32_t first_step;
  float clip_norm;                 // 0: gradients are not clipped
  float average_old, average_new;  // shares of the average's old value and of the new weight
};

// optimizer_step(numbers, pieces, values, first moments or null, second moments or null, average or null, factor of the
// gradients or null): a block for each piece. The second moments are Adam's; SGD uses the first ones for momentum.
Source optimizer_step(bool sgd);
// gradient_squares(pieces, slots: double*): the sum of each piece's squares, a block for each.
Source gradient_squares();
// gradient_factor(numbers, slots, count: int64, factor: float*), one block: what clipping multiplies gradients by.
// Slots are added in order.
Source gradient_factor();

}  // namespace nacre::cuda

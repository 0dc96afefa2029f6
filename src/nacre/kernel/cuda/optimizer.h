// Sources of a step of the optimiser. Parameters are cut into pieces, and a block works on one
// piece.
#pragma once

#include "nacre/kernel/cuda/params.h"
#include "nacre/kernel/optimizer_numbers.h"

namespace nacre::cuda {

inline constexpr int64_t kOptimizerPiece = 1024;  // most elements of a piece

// A piece in device memory. `offset` is the number of its first element among all parameters and
// moments.
NACRE_STRUCT(OptimizerPiece, (const float*, gradient), (long long, offset, size));

// `first` and `second` are the moments of Adam; SGD uses the first ones for momentum. Moments, the
// average and the factor of the gradients are null if they are not used.
NACRE_PARAMS(OptimizerStepParams, (const OptimizerNumbers* __restrict__, numbers),
             (const OptimizerPiece* __restrict__, pieces), (float* __restrict__, values), (float* __restrict__, first),
             (float* __restrict__, second), (float* __restrict__, average), (const float* __restrict__, factor));
// Updates the weights, their moments and their average; each block works on one piece.
Source optimizer_step(bool sgd);
NACRE_PARAMS(GradientSquaresParams, (const OptimizerPiece* __restrict__, pieces), (double* __restrict__, places));
// Computes the sum of the squares of the gradients of each piece, one block for each piece.
Source gradient_squares();
NACRE_PARAMS(GradientFactorParams, (const OptimizerNumbers* __restrict__, numbers),
             (const double* __restrict__, places), (long long, count), (float* __restrict__, factor));
// Computes the number by which clipping multiplies gradients. One block adds the sums of squares in
// order.
Source gradient_factor();

}  // namespace nacre::cuda

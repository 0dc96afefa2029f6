// Losses and column statistics on the CPU: sums run over fixed chunks of rows whose partial results
// (in double) are added in order, so the bits do not depend on the number of threads.
#pragma once

#include <cstdint>

namespace nacre::cpu {

// Returns the number of doubles of workspace that the functions below need for `rows` rows and
// `width` columns.
int64_t rows_workspace(int64_t rows, int64_t width);

struct LossArgs {
  int64_t rows = 0;
  int64_t classes = 0;
  const float* x = nullptr;         // rows × classes: log-probabilities (nll) or logits (bce)
  const int32_t* label = nullptr;   // used by nll only
  const uint8_t* target = nullptr;  // used by bce only: rows × classes
  // A weight for each row. With weight_of_each (bce only), there is one for each row and class.
  const float* weight = nullptr;
  bool weight_of_each = false;
  // Label smoothing. nll learns the label with the weight 1 − smoothing, and every class (the
  // label's class included) with smoothing / classes. The targets of bce move by smoothing / 2
  // towards one half.
  double smoothing = 0;
  const float* gradient = nullptr;  // used by gradients only: the incoming scalar
  float* out = nullptr;             // a scalar for losses, rows × classes for gradients
  double* workspace = nullptr;      // rows_workspace(rows, 1) doubles; used by losses only
};
void nll(const LossArgs& args);
void nll_grad(const LossArgs& args);
void bce(const LossArgs& args);
void bce_grad(const LossArgs& args);

// Computes out[2, width]: the mean and the biased variance of every column, in two passes.
void column_moments(const float* x, int64_t rows, int64_t width, float* out, double* workspace);

struct StandardizeGradArgs {
  int64_t rows = 0;
  int64_t width = 0;
  const float* g = nullptr;
  const float* x = nullptr;
  const float* moments = nullptr;  // [2, width]
  float epsilon = 0;
  float* out = nullptr;
  double* workspace = nullptr;  // rows_workspace(rows, 2 · width)
};
void standardize_grad(const StandardizeGradArgs& args);

}  // namespace nacre::cpu

// Losses and column statistics on the CPU: sums run over fixed chunks of rows whose partial results
// (in double) are added in order, so the bits do not depend on the number of threads.
#pragma once

#include <cstdint>

namespace nacre::cpu {

// Doubles of workspace the functions below need for `rows` rows and `width` columns.
int64_t rows_workspace(int64_t rows, int64_t width);

struct LossArgs {
  int64_t rows = 0;
  int64_t classes = 0;
  const float* x = nullptr;         // rows × classes: log-probabilities (nll) or logits (bce)
  const int32_t* label = nullptr;   // nll
  const uint8_t* target = nullptr;  // bce: rows × classes
  const float* weight = nullptr;    // rows; with weight_of_each (bce) rows × classes
  bool weight_of_each = false;
  // Label smoothing: nll learns the label with the weight 1 − smoothing and every class, the
  // label's among them, with smoothing / classes; targets of bce move by smoothing / 2 towards one
  // half.
  double smoothing = 0;
  const float* gradient = nullptr;  // gradients only: the incoming scalar
  float* out = nullptr;             // a scalar, or rows × classes
  double* workspace = nullptr;      // rows_workspace(rows, 1), losses only
};
void nll(const LossArgs& args);
void nll_grad(const LossArgs& args);
void bce(const LossArgs& args);
void bce_grad(const LossArgs& args);

// out[2, width]: mean and biased variance of every column (two passes).
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

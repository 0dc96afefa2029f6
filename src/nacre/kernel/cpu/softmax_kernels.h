// The single-threaded core of the edge softmax: one set of functions for each instruction set,
// chosen at run time.
#pragma once

#include <cstdint>

namespace nacre::cpu {

// The operands of a softmax over the entries of each row, computed in place. Every entry has
// `heads` values. `spare` holds 2 · heads floats.
struct SoftmaxRows {
  const int64_t* row_ptr = nullptr;  // rows + 1: entries of each row
  int64_t rows = 0;
  int64_t heads = 1;
  // A number for each entry and head. On entry these are the scores (softmax) or g (gradient); on
  // return, the result.
  float* values = nullptr;
  const float* y = nullptr;  // used by the gradient only: the softmax
  float* spare = nullptr;
};

void softmax_rows(const SoftmaxRows& rows);
void softmax_grad_rows(const SoftmaxRows& rows);

}  // namespace nacre::cpu

// The single-threaded core of edge softmax, one set per instruction set, chosen at run time.
#pragma once

#include <cstdint>

namespace nacre::cpu {

// Softmax over runs of entries, `heads` values each, in place. `spare`: 2 · heads floats.
struct SoftmaxRows {
  const int64_t* row_ptr = nullptr;  // rows + 1: entries of each row
  int64_t rows = 0;
  int64_t heads = 1;
  float* values = nullptr;   // of all entries: scores (softmax) or g (gradient) in, the result out
  const float* y = nullptr;  // gradient only: the softmax
  float* spare = nullptr;
};

void softmax_rows(const SoftmaxRows& rows);
void softmax_grad_rows(const SoftmaxRows& rows);

}  // namespace nacre::cpu

// Sources of the losses. Scalars are summed in double: every block leaves its sum in a slot, a second launch of one
// block adds the slots in order, so the bits depend on the number of rows only.
#pragma once

#include "nacre/kernel/cuda/source.h"

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

// loss_sum(x, label or target, weight, slots: double*, rows: int64, rows_of_block: int64), loss_blocks(rows) blocks.
Source loss_sum(const LossShape& loss);
// loss_total(slots, count: int64, out: float*), one block.
Source loss_total();
// loss_grad(x, label or target, weight, gradient: const float*, out, elements: int64), a thread for each element.
Source loss_grad(const LossShape& loss);
int64_t loss_rows_of_block(int64_t rows);

}  // namespace nacre::cuda

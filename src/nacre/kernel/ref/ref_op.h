// The reference implementation of every operation: slow, obvious, accumulating in double. It is the
// oracle of all other kernels (T = double) and the last entry of every implementation list (T =
// float).
#pragma once

#include <span>

#include "nacre/kernel/blocks.h"

namespace nacre::ref {

// A value in memory: rows × row_size elements of T (f32 values), int32_t (i32) or uint8_t (u8).
struct ConstView {
  const void* data = nullptr;
  ValueType type;
  int64_t rows = 0;
};
struct View {
  void* data = nullptr;
  ValueType type;
  int64_t rows = 0;
};

// Computes `node` (not a leaf other than degree and typed_degree) from its inputs into `out`,
// overwriting it.
template <class T>
void run(const Node& node, const Blocks& blocks, const StepContext& step, std::span<const ConstView> inputs, View out);

extern template void run<float>(const Node&, const Blocks&, const StepContext&, std::span<const ConstView>, View);
extern template void run<double>(const Node&, const Blocks&, const StepContext&, std::span<const ConstView>, View);

}  // namespace nacre::ref

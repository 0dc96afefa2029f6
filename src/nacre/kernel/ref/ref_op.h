// The reference implementation of every operation: slow, obvious, and accumulating in double. All
// other kernels are tested against it (T = double), and it is the last entry of every list of
// implementations (T = float).
#pragma once

#include <span>

#include "nacre/kernel/blocks.h"

namespace nacre::ref {

// Refers to a value in memory: rows × row_size elements, of T for f32 values, of int32_t for i32
// and of uint8_t for u8.
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

// Computes `node` from its inputs into `out`, which is overwritten. The node must not be a leaf,
// except degree and typed_degree.
template <class T>
void run(const Node& node, const Blocks& blocks, const StepContext& step, std::span<const ConstView> inputs, View out);

extern template void run<float>(const Node&, const Blocks&, const StepContext&, std::span<const ConstView>, View);
extern template void run<double>(const Node&, const Blocks&, const StepContext&, std::span<const ConstView>, View);

}  // namespace nacre::ref

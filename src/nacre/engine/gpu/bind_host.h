// Kernels that run on the host between copies.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Whether a kernel has no version for the GPU: its operands are brought to the host and its results sent back.
inline bool runs_on_host(const Kernel& kernel, const Dfg& dfg) {
  if (kernel.kind == KernelKind::lstm) return kernel.second >= 0 || dfg[kernel.root].op == Op::lstm_gates;
  return kernel.kind == KernelKind::reference || kernel.kind == KernelKind::lstm_gates_grad;
}

// Whether it has operands, so that every step needs the host: it cannot be recorded in a graph of launches.
inline bool waits_for_host(const Kernel& kernel, const Dfg& dfg) {
  const auto has_operands = [&](NodeRef i) { return i >= 0 && !dfg[i].inputs.empty(); };
  return runs_on_host(kernel, dfg) && (has_operands(kernel.root) || has_operands(kernel.second));
}

}  // namespace nacre

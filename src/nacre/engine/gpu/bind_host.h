// Kernels of a GPU plan that run on the host, between copies of their operands and results.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Returns whether a kernel has no version for the GPU. Its operands are then copied to the host and
// its results back to the device.
inline bool runs_on_host(const Kernel& kernel, const Dfg& dfg) {
  if (kernel.kind == KernelKind::lstm) return kernel.second >= 0 || dfg[kernel.root].op == Op::lstm_gates;
  return kernel.kind >= KernelKind::reference || kernel.kind == KernelKind::lstm_gates_grad;
}

// Returns whether a kernel runs on the host and has operands. Every step then waits for the host,
// so the step cannot be recorded as a graph of launches.
inline bool waits_for_host(const Kernel& kernel, const Dfg& dfg) {
  const auto has_operands = [&](NodeRef i) { return i >= 0 && !dfg[i].inputs.empty(); };
  return runs_on_host(kernel, dfg) && (has_operands(kernel.root) || has_operands(kernel.second));
}

}  // namespace nacre

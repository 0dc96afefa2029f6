#include "nacre/plan/operands.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {

void list_operands(const Kernel& kernel, std::span<const KernelKind> kinds, std::span<NodeRef> list) {
  const bool known = std::find(kinds.begin(), kinds.end(), kernel.kind) != kinds.end();
  NACRE_CHECK(known && kernel.args.size() <= list.size(),
              "kernel " + std::string(kernel_name(kernel.kind)) + " does not have the operands asked for");
  const auto rest = std::copy(kernel.args.begin(), kernel.args.end(), list.begin());
  std::fill(rest, list.end(), -1);
}

NodeRef sequence_weight(const Kernel& kernel) {
  if (kernel.kind == KernelKind::lstm) return operands<LstmOperands>(kernel).weight;
  if (kernel.kind == KernelKind::lstm_grad) return operands<LstmGradOperands>(kernel).weight;
  return operands<LstmGatesGradOperands>(kernel).weight;
}

}  // namespace nacre

#include "nacre/plan/variants/place.h"

namespace nacre {

bool runs_on_host(const Kernel& kernel, const Dfg& dfg) {
  if (kernel.kind == KernelKind::lstm) return kernel.second >= 0 || dfg[kernel.root].op == Op::lstm_gates;
  return kernel.kind >= KernelKind::reference || kernel.kind == KernelKind::lstm_gates_grad;
}

bool waits_for_host(const Kernel& kernel, const Dfg& dfg) {
  const auto has_operands = [&](NodeRef i) { return i >= 0 && !dfg[i].inputs.empty(); };
  return runs_on_host(kernel, dfg) && (has_operands(kernel.root) || has_operands(kernel.second));
}

bool sums_pairs(const Kernel& kernel) {
  return kernel.kind == KernelKind::spmm && kernel.heads == 1 && kernel.tail.empty() &&
         kernel.reduce_op == ReduceOp::sum &&
         (kernel.direction == Direction::by_dst_pair || kernel.direction == Direction::by_src_pair);
}

bool takes_bf16(const Kernel& kernel, const Dfg& dfg) {
  if (runs_on_host(kernel, dfg) || sums_pairs(kernel)) return false;
  switch (kernel.kind) {
    case KernelKind::map:
    case KernelKind::map_edges:
    case KernelKind::reduce:
    case KernelKind::spmm:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
    case KernelKind::column_sum:
    case KernelKind::matmul:
    case KernelKind::weight_grad:
      return true;
    default:
      return false;
  }
}

PlaceFacts place_facts(const PlannedKernel& k) {
  return {kernel_name(k.kernel.kind), runs_on_host(k.kernel, k.plan.dfg)};
}

const VariantList<PlaceFacts>& place_variants() {
  static const VariantList<PlaceFacts> list = {
      "place",
      false,
      {{"on the device",
        [](const PlaceFacts& f, const DeviceTraits&) {
          return f.no_gpu_version ? "there is no GPU kernel for this " + std::string(f.kind) : "";
        },
        nullptr},
       {"on the host, between copies", nullptr, nullptr}}};
  return list;
}

}  // namespace nacre

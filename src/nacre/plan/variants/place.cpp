#include "nacre/plan/variants/place.h"

namespace nacre {

KernelFamily family_of(const Kernel& kernel, const Dfg& dfg) {
  if (sums_pairs(kernel)) return KernelFamily::typed;
  switch (kernel.kind) {
    case KernelKind::map:
    case KernelKind::map_edges:
    case KernelKind::reduce:
    case KernelKind::spmm:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
    case KernelKind::column_sum:
      return KernelFamily::rows;
    case KernelKind::matmul:
    case KernelKind::weight_grad:
      return KernelFamily::matrix;
    case KernelKind::typed_reduce:
    case KernelKind::typed_weight_grad:
    case KernelKind::typed_rows:
    case KernelKind::typed_rows_grad:
      return KernelFamily::typed;
    case KernelKind::gtask:
    case KernelKind::gtask_grad:
      return KernelFamily::tasks;
    case KernelKind::lstm:
      // The GPU's LSTM does not keep its gates for the gradient.
      return kernel.second >= 0 || dfg[kernel.root].op == Op::lstm_gates ? KernelFamily::host : KernelFamily::lstm;
    case KernelKind::lstm_grad:
      return KernelFamily::lstm;
    case KernelKind::loss:
    case KernelKind::moments:
      return KernelFamily::loss;
    case KernelKind::copy:
      return KernelFamily::copy;
    case KernelKind::exchange:
      return KernelFamily::exchange;
    default:
      return KernelFamily::host;
  }
}

bool runs_on_host(const Kernel& kernel, const Dfg& dfg) { return family_of(kernel, dfg) == KernelFamily::host; }

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
  const KernelFamily family = family_of(kernel, dfg);
  return family == KernelFamily::rows || family == KernelFamily::matrix;
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
          return f.no_gpu_version ? "there is no GPU version of the kernel " + std::string(f.kind) : "";
        },
        nullptr},
       {"on the host, between copies", nullptr, nullptr}}};
  return list;
}

}  // namespace nacre

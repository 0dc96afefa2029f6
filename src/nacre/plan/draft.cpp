#include "nacre/plan/draft.h"

#include <algorithm>
#include <numeric>

namespace nacre {

static_assert(3 * kMaxTail + 1 <= kMaxRegisters);

bool takes_tail(KernelKind kind) {
  return kind == KernelKind::map || kind == KernelKind::reduce || kind == KernelKind::spmm ||
         kind == KernelKind::matmul || kind == KernelKind::gtask;
}

namespace {

constexpr int64_t kShortRow = 8;

}  // namespace

bool fits_tail(const Kernel& kernel, const Dfg& dfg, int64_t row_size) {
  if (!takes_tail(kernel.kind)) return false;
  return kernel.kind != KernelKind::reduce || dfg[kernel.root].type.row_size() > kShortRow || row_size <= 2 * kShortRow;
}

Draft::Draft(const Dfg& dfg, const Blocks& on, const PlanOptions& options) : blocks(on) {
  plan.name = options.fuse ? "auto" : "tensor";
  plan.options = options;
  plan.dfg = dfg;
}

void Draft::analyse() {
  analysis_ = std::make_unique<Analysis>(plan.dfg, blocks, plan.options.hoist);
  inlined.assign(plan.dfg, 0);
  kernels_of.assign(plan.dfg, -1);
  plan.alias.assign(plan.dfg, 0);
  std::iota(plan.alias.begin(), plan.alias.end(), 0);
}

bool Draft::computes(int kernel, NodeRef i) const {
  if (kernel < 0) return false;
  const std::vector<NodeRef>& nodes = plan.kernels[kernel].nodes;
  return std::find(nodes.begin(), nodes.end(), i) != nodes.end();
}

void Draft::add_readers(NodeRef i, std::vector<NodeRef>& readers) const {
  for (const NodeRef c : an().consumers(i)) {
    const bool same_bytes = !is_inlined(c) && owner(c) == owner(i);
    if (same_bytes) add_readers(c, readers);
    if (!same_bytes || an().is_result(c)) readers.push_back(c);
  }
}

std::vector<NodeRef> Draft::readers(NodeRef i) const {
  std::vector<NodeRef> list;
  add_readers(i, list);
  return list;
}

void Draft::erase_empty_kernels() {
  std::vector<int> now(plan.kernels.size(), -1);
  int kept = 0;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (!plan.kernels[k].nodes.empty()) now[k] = kept++;
  }
  std::erase_if(plan.kernels, [](const Kernel& k) { return k.nodes.empty(); });
  for (int& k : kernels_of) {
    if (k >= 0) k = now[k];
  }
}

}  // namespace nacre

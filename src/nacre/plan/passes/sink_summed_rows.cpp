// sink_summed_rows: a row-wise node that only one sum over all rows reads is computed by the kernel
// of that sum, so its rows never reach memory. This pays if at most one operand has rows as long as
// those of the node: the kernel then reads that operand instead of the rows of the node, and these
// are not written.
#include <algorithm>

#include "nacre/plan/passes.h"

namespace nacre {
namespace {

class SummedRows {
 public:
  explicit SummedRows(Draft& draft) : draft_(draft), plan_(draft.plan), dfg_(draft.plan.dfg), an_(draft.an()) {}

  void run() {
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      if (plan_.kernels[k].kind != KernelKind::column_sum) continue;
      const NodeRef summed = dfg_[plan_.kernels[k].root].inputs[0];
      if (movable(summed, k)) move(summed, k);
    }
    draft_.erase_empty_kernels();
  }

 private:
  bool movable(NodeRef i, size_t to) const {
    const int from = draft_.kernel_of(i);
    if (from < 0 || draft_.is_inlined(i) || draft_.owner(i) != i || an_.is_result(i)) return false;
    if (!an_.row_local(i) || dfg_[i].type.space.kind == SpaceKind::edge) return false;
    const Kernel& kernel = plan_.kernels[from];
    const Kernel& sum = plan_.kernels[to];
    // All nodes of a map may move to another kernel. Other kernels have a root that no other kernel
    // can compute.
    if (i == kernel.second || (i == kernel.root && (kernel.kind != KernelKind::map || kernel.nodes.size() > 1)))
      return false;
    return kernel.once == sum.once && draft_.readers(i) == std::vector<NodeRef>{sum.root} && reads_few(i, from);
  }

  // Returns whether another kernel can read the operands of the node at little cost: no operand is
  // inlined, no long row would have to be stored for it, and at most one operand has long rows.
  bool reads_few(NodeRef i, int from) const {
    int long_rows = 0;
    for (const NodeRef in : dfg_[i].inputs) {
      const NodeRef operand = draft_.owner(in);
      if (draft_.is_inlined(in)) return false;
      if (dfg_[operand].type.space == Space::param() || dfg_[operand].type.row_size() < dfg_[i].type.row_size())
        continue;
      const auto readers = draft_.readers(operand);
      const bool read_elsewhere = std::any_of(readers.begin(), readers.end(), [&](NodeRef c) {
        return draft_.is_inlined(c) || draft_.kernel_of(c) != from;
      });
      if (!an_.bound(operand) && draft_.kernel_of(operand) == from && !an_.is_result(operand) && !read_elsewhere)
        return false;
      ++long_rows;
    }
    return long_rows <= 1;
  }

  void move(NodeRef i, size_t to) {
    std::vector<NodeRef>& source = plan_.kernels[draft_.kernel_of(i)].nodes;
    std::erase(source, i);
    plan_.kernels[to].nodes.insert(plan_.kernels[to].nodes.begin(), i);
    draft_.set_kernel(i, static_cast<int>(to));
  }

  Draft& draft_;
  Plan& plan_;
  const Dfg& dfg_;
  const Analysis& an_;
};

}  // namespace

void sink_summed_rows(Draft& draft) {
  if (draft.plan.options.fuse) SummedRows(draft).run();
}

}  // namespace nacre

#include "nacre/plan/narrow.h"

#include <algorithm>

#include "nacre/plan/variants/place.h"

namespace nacre {
namespace {

// Shorter rows are not worth it, and products cannot take rows whose lengths are not multiples of
// eight.
constexpr int64_t kNarrowest = 16;
constexpr int64_t kMultiple = 8;

bool suits(const Node& node) {
  const int64_t width = node.type.row_size();
  return node.type.space.on_vertices() && node.type.dtype == DType::f32 && node.op != Op::input &&
         node.op != Op::param && width >= kNarrowest && width % kMultiple == 0;
}

// Returns whether a communication kernel moves whole rows, which may be bf16. Columns of rows are
// moved as f32, because some ranks may have columns that suit no kernel of bf16.
bool moves_rows(const Kernel& kernel, const Dfg& dfg) {
  const Op op = dfg[kernel.root].op;
  return kernel.kind == KernelKind::exchange && (op == Op::exchange || op == Op::exchange_add);
}

void mark_operands(RowProgram& program, const Plan& plan) {
  program.narrow.clear();
  for (const NodeRef o : program.operands) program.narrow.push_back(plan.narrow[o]);
}

}  // namespace

void narrow_values(Plan& plan) {
  const auto owner = [&](NodeRef i) { return plan.alias[i]; };
  NodeVector<char> narrow(plan.dfg, 0);
  for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
    narrow[i] = plan.stored[owner(i)] != 0 && suits(plan.dfg[owner(i)]);
  }
  const auto keep = [&](NodeRef i) {
    if (i >= 0) narrow[owner(i)] = 0;
  };
  for (const auto& [name, node] : plan.dfg.outputs()) keep(node);
  for (const auto& [name, node] : plan.dfg.updates()) keep(node);
  for (const Kernel& kernel : plan.kernels) {
    if (takes_bf16(kernel, plan.dfg) || moves_rows(kernel, plan.dfg)) continue;
    std::for_each(kernel.reads.begin(), kernel.reads.end(), keep);
    std::for_each(kernel.writes.begin(), kernel.writes.end(), keep);
    std::for_each(kernel.args.begin(), kernel.args.end(), keep);
    std::for_each(plan.dfg[kernel.root].inputs.begin(), plan.dfg[kernel.root].inputs.end(), keep);
  }
  // The operand and the result of an exchange have the same type, and may share their memory.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Kernel& kernel : plan.kernels) {
      if (!moves_rows(kernel, plan.dfg)) continue;
      const NodeRef from = owner(plan.dfg[kernel.root].inputs[0]), to = owner(kernel.root);
      if (narrow[from] == narrow[to]) continue;
      narrow[from] = narrow[to] = 0;
      changed = true;
    }
  }
  plan.narrow.assign(plan.dfg, 0);
  for (NodeRef i = 0; i < plan.dfg.size(); ++i) plan.narrow[i] = narrow[owner(i)];
  for (Kernel& kernel : plan.kernels) {
    mark_operands(kernel.program, plan);
    mark_operands(kernel.tail, plan);
  }
}

bool moves_bf16(const Plan& plan, const Kernel& kernel) {
  return !plan.narrow.empty() && moves_rows(kernel, plan.dfg) && plan.narrow[kernel.root] != 0;
}

double stored_bytes(const Plan& plan, const Kernel& kernel) { return moves_bf16(plan, kernel) ? 2 : 4; }

}  // namespace nacre

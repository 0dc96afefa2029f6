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
    if (takes_bf16(kernel, plan.dfg)) continue;
    std::for_each(kernel.reads.begin(), kernel.reads.end(), keep);
    std::for_each(kernel.writes.begin(), kernel.writes.end(), keep);
    std::for_each(kernel.args.begin(), kernel.args.end(), keep);
    std::for_each(plan.dfg[kernel.root].inputs.begin(), plan.dfg[kernel.root].inputs.end(), keep);
  }
  plan.narrow.assign(plan.dfg, 0);
  for (NodeRef i = 0; i < plan.dfg.size(); ++i) plan.narrow[i] = narrow[owner(i)];
  for (Kernel& kernel : plan.kernels) {
    mark_operands(kernel.program, plan);
    mark_operands(kernel.tail, plan);
  }
}

}  // namespace nacre

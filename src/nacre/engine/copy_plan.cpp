#include "nacre/engine/copy_plan.h"

#include "nacre/base/error.h"

namespace nacre {

namespace {

// Plans the copies between the rows of v0 and the rows of single kinds.
CopyPlan plan_kinds(const Executor& executor, const Node& root, NodeRef at) {
  const Dfg& dfg = executor.plan().dfg;
  const bool joins = root.op == Op::join_rows;
  CopyPlan plan;
  plan.width = root.type.row_size();
  for (const NodeRef in : root.inputs) {
    const Space kind = joins ? dfg[in].type.space : root.type.space;
    plan.listed.push_back({executor.pointer(at), executor.pointer(in), &executor.blocks().kind_rows(kind), joins});
  }
  return plan;
}

bool copies_kinds(const Dfg& dfg, const Node& root) {
  const auto of_kind = [](const Node& node) { return node.type.space.kind == SpaceKind::kind; };
  return of_kind(root) ? root.op == Op::slice_rows : root.op == Op::join_rows && of_kind(dfg[root.inputs[0]]);
}

}  // namespace

CopyPlan plan_copy(const Executor& executor, const Kernel& kernel) {
  const Dfg& dfg = executor.plan().dfg;
  const Node& root = dfg[kernel.root];
  if (copies_kinds(dfg, root)) return plan_kinds(executor, root, kernel.root);
  const auto rows = [&](NodeRef i) { return executor.blocks().rows(dfg[i].type.space); };
  const int64_t row = root.type.row_size() * dtype_size(root.type.dtype);
  auto* out = static_cast<char*>(executor.pointer(kernel.root));
  CopyPlan plan;
  if (root.op == Op::slice_rows) {
    const NodeRef from = root.inputs[0];
    NACRE_CHECK(root.ints[0] + root.ints[1] <= rows(from), "the kernel copies rows that do not exist");
    plan.parts.push_back(
        {out, static_cast<const char*>(executor.pointer(from)) + root.ints[0] * row, root.ints[1] * row});
    return plan;
  }
  int64_t at = 0;
  for (const NodeRef in : root.inputs) {
    plan.parts.push_back({out + at * row, executor.pointer(in), rows(in) * row});
    at += rows(in);
  }
  const int64_t left = rows(kernel.root) - at;
  NACRE_CHECK(left == 0 || (left > 0 && root.op == Op::index_add),
              "the kernel joins another number of rows than its result has");
  plan.zeros = out + at * row;
  plan.zero_bytes = left * row;
  return plan;
}

}  // namespace nacre

#include "nacre/plan/tail_program.h"

#include <set>

#include "nacre/plan/operands.h"
#include "nacre/plan/program_builder.h"

namespace nacre {

RowProgram tail_program(const Draft& draft, const Kernel& kernel, const NodeVector<char>* stored) {
  const Dfg& dfg = draft.dfg();
  const std::set<NodeRef> own(kernel.nodes.begin(), kernel.nodes.end());
  // The program also computes products: a product of the kernel that is not its root has been
  // joined to the kernel (join_products).
  const auto joined = [&](NodeRef v) { return dfg[v].op == Op::matmul || dfg[v].op == Op::matmul_t; };
  ProgramBuilder builder(draft.an(), draft.plan.alias, dfg[kernel.root].type.space,
                         [&](NodeRef v) { return own.contains(v) && (draft.an().row_local(v) || joined(v)); });
  builder.set_root(kernel.root);
  for (const NodeRef v : kernel.nodes) {
    if (v == kernel.root || v == kernel.second || draft.owner(v) != v) continue;
    builder.value(v);
    if (stored != nullptr && (*stored)[v]) builder.store(v);
  }
  return std::move(builder).finish();
}

SummedProducts summed_products(const Plan& plan, const Kernel& kernel) {
  const auto in = operands<ProductOperands>(kernel);
  SummedProducts sum = {{{in.x, in.weight, kernel.transpose}}, kernel.tail};
  if (plan.stored[kernel.root] != 0) return sum;
  if (const auto second = take_product(sum.tail)) sum.inputs.push_back(*second);
  return sum;
}

}  // namespace nacre

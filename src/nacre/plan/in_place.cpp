#include "nacre/plan/in_place.h"

#include <algorithm>

namespace nacre {
namespace {

// Hand-written kernels read their arguments in any order. (An argument may be a reshape of the
// value.)
bool reads_argument(const Plan& plan, const Kernel& kernel, NodeRef value) {
  return std::any_of(kernel.args.begin(), kernel.args.end(),
                     [&](NodeRef a) { return a >= 0 && plan.alias[a] == value; });
}

bool same_size(const Plan& plan, NodeRef a, NodeRef b) {
  const ValueType& s = plan.dfg[a].type;
  const ValueType& t = plan.dfg[b].type;
  return s.space.kind == t.space.kind && s.row_size() == t.row_size() && dtype_size(s.dtype) == dtype_size(t.dtype) &&
         plan.is_narrow(a) == plan.is_narrow(b);
}

}  // namespace

NodeRef overwritten_operand(const Plan& plan, const Kernel& kernel, NodeRef written,
                            const std::function<bool(NodeRef)>& last) {
  const bool map = kernel.kind == KernelKind::map;
  const RowProgram& program = map ? kernel.program : kernel.tail;
  // A kernel writes its root before its tail reads the operands, so the root cannot take the place
  // of one.
  if (!map && (written == kernel.root || written == kernel.second)) return -1;
  for (const NodeRef r : kernel.reads) {
    if (!last(r) || !same_size(plan, r, written)) continue;
    const auto reads = [&](const std::vector<NodeRef>& list) {
      return std::find(list.begin(), list.end(), r) != list.end();
    };
    bool by_row = !reads_argument(plan, kernel, r) && (map || !reads(kernel.program.operands));
    bool stored = false;
    for (const Micro& m : program.code) {
      if (m.operand < 0) continue;
      const NodeRef operand = program.operands[m.operand];
      stored |= operand == written;
      // The store overwrites the rows of `r`, so later instructions must not read them.
      if (operand == r && (m.op != MicroOp::load || stored)) by_row = false;
    }
    if (by_row) return r;
  }
  return -1;
}

}  // namespace nacre

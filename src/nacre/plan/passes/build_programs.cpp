// build_programs: writes the row programs of the kernels, and lists what each kernel reads.
#include <set>

#include "nacre/plan/passes.h"
#include "nacre/plan/program_builder.h"
#include "nacre/plan/tail_program.h"

namespace nacre {
namespace {

// Returns the node that the kernel's program over edges or rows computes, or -1 if its kind has no
// such program.
NodeRef value_of_program(const Dfg& dfg, const Kernel& k) {
  switch (k.kind) {
    case KernelKind::map:
    case KernelKind::map_edges:
      return k.root;
    case KernelKind::reduce:
    case KernelKind::gtask:
    case KernelKind::gtask_grad:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
    case KernelKind::column_sum:
      return dfg[k.root].inputs[0];
    default:
      return -1;
  }
}

void build(const Draft& draft, Kernel& k) {
  const Dfg& dfg = draft.dfg();
  const NodeRef value = value_of_program(dfg, k);
  const bool map = k.kind == KernelKind::map || k.kind == KernelKind::map_edges;
  if (value >= 0) {
    const std::set<NodeRef> own(k.nodes.begin(), k.nodes.end());
    // A program over edges computes inlined nodes, and the kernel's own root if that is row-local.
    const auto inside = [&](NodeRef v) { return draft.is_inlined(v) || (own.contains(v) && draft.an().row_local(v)); };
    ProgramBuilder builder(draft.an(), draft.plan.alias, dfg[value].type.space, inside);
    k.value = builder.value(value);
    if (k.kind == KernelKind::gtask_grad) k.second_value = builder.value(dfg[k.root].inputs[1]);
    if (map) {
      for (const NodeRef v : k.nodes) builder.value(v);
    }
    k.program = std::move(builder).finish();
  }
  // A sum over all rows has no tail, because its other nodes are part of its program.
  const bool summed = k.kind == KernelKind::column_sum;
  if (!map && !summed && k.nodes.size() > 1) k.tail = tail_program(draft, k, nullptr);
}

void collect_reads(const Draft& draft, Kernel& k) {
  std::set<NodeRef> reads;
  for (const NodeRef a : k.args) {
    if (a >= 0) reads.insert(draft.owner(a));
  }
  for (const RowProgram* p : {&k.program, &k.tail}) {
    for (const NodeRef o : p->operands) reads.insert(o);
  }
  // A kernel does not read from memory what it computes itself.
  for (const NodeRef v : k.nodes) reads.erase(v);
  k.reads.assign(reads.begin(), reads.end());
}

}  // namespace

void build_programs(Draft& draft) {
  for (Kernel& k : draft.plan.kernels) {
    build(draft, k);
    collect_reads(draft, k);
  }
}

}  // namespace nacre

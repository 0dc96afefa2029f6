// store_values: decides which nodes have memory, and lets the kernels' programs write them.
#include <set>

#include "nacre/plan/passes.h"
#include "nacre/plan/program_builder.h"
#include "nacre/plan/tail_program.h"

namespace nacre {
namespace {

// Results have memory, and so do values that another kernel reads.
NodeVector<char> find_stored(const Draft& draft) {
  NodeVector<char> stored(draft.dfg(), 0);
  for (const Kernel& k : draft.plan.kernels) {
    for (const NodeRef r : k.reads) stored[r] = 1;
  }
  for (NodeRef i = 0; i < draft.dfg().size(); ++i) {
    if (draft.an().is_result(i)) stored[draft.owner(i)] = 1;
  }
  for (const Kernel& k : draft.plan.kernels) {
    // Kinds without a tail always write their root, and so does a kernel that has nothing but its
    // root.
    if (!takes_tail(k.kind) && k.tail.empty()) stored[k.root] = 1;
    if (k.second >= 0) stored[k.second] = 1;
  }
  return stored;
}

RowProgram map_program(const Draft& draft, const Kernel& k) {
  const std::set<NodeRef> own(k.nodes.begin(), k.nodes.end());
  ProgramBuilder builder(draft.an(), draft.plan.alias, draft.dfg()[k.root].type.space,
                         [&](NodeRef v) { return draft.is_inlined(v) || own.contains(v); });
  for (const NodeRef v : k.nodes) {
    builder.value(v);
    if (draft.owner(v) == v && draft.plan.stored[v]) builder.store(v);
  }
  return std::move(builder).finish();
}

}  // namespace

void store_values(Draft& draft) {
  draft.plan.stored = find_stored(draft);
  for (Kernel& k : draft.plan.kernels) {
    for (const NodeRef v : k.nodes) {
      if (draft.owner(v) == v && draft.plan.stored[v]) k.writes.push_back(v);
    }
    if (k.kind == KernelKind::map || k.kind == KernelKind::map_edges) {
      k.program = map_program(draft, k);
      k.value = -1;
    } else if (k.kind != KernelKind::column_sum && k.nodes.size() > 1) {
      k.tail = tail_program(draft, k, &draft.plan.stored);
    }
  }
}

}  // namespace nacre

// sink_tails: a tail node that only the tail of one later kernel reads moves there if what the node
// needs is in memory anyway. This saves writing, reading and keeping one value.
#include <algorithm>
#include <set>

#include "nacre/plan/passes.h"

namespace nacre {
namespace {

class Sinking {
 public:
  explicit Sinking(Draft& draft) : draft_(draft), plan_(draft.plan), dfg_(draft.plan.dfg), an_(draft.an()) {}

  void run() {
    // Nodes are visited from the last to the first, so that a reader moves before the nodes it
    // reads and a whole chain can follow it.
    for (NodeRef i = dfg_.size() - 1; i >= 0; --i) {
      const int to = target(i);
      std::vector<NodeRef> moved;
      std::set<NodeRef> wide_operands;
      if (to < 0 || !sinkable(i, moved, wide_operands) || wide_operands.size() > 1) continue;
      if (has_room(moved, draft_.kernel_of(i), to)) move_nodes(moved, draft_.kernel_of(i), to);
    }
    draft_.erase_empty_kernels();
  }

 private:
  // Returns whether the node is a root that must stay in its kernel. The root of a map is row-wise
  // like all nodes of the map, so it may move.
  static bool is_root(const Kernel& kernel, NodeRef i) { return i == kernel.root && kernel.kind != KernelKind::map; }

  // Returns the kernel that a tail node could move to, or -1.
  int target(NodeRef i) const {
    const int from = draft_.kernel_of(i);
    if (from < 0 || draft_.is_inlined(i) || draft_.owner(i) != i || !an_.row_local(i) || an_.is_result(i)) return -1;
    const Kernel& k = plan_.kernels[from];
    if (!takes_tail(k.kind) || is_root(k, i) || i == k.second || dfg_[i].type.space == Space::param()) return -1;
    int to = -1;
    for (const NodeRef c : draft_.readers(i)) {
      const int at = draft_.is_inlined(c) ? -1 : draft_.kernel_of(c);
      if (at < 0 || at == from || (to >= 0 && at != to)) return -1;
      const Kernel& reader = plan_.kernels[at];
      const bool in_tail = fits_tail(reader, dfg_, dfg_[i].type.row_size()) && c != reader.second &&
                           (c != reader.root || reader.kind == KernelKind::map);
      if (!in_tail || reader.once != k.once || !an_.same_rows(dfg_[reader.root].type.space, dfg_[i].type.space))
        return -1;
      to = at;
    }
    return to;
  }

  // Returns whether the operands of the node are in memory whatever happens to the node. Operands
  // that only the node reads move along.
  bool sinkable(NodeRef i, std::vector<NodeRef>& moved, std::set<NodeRef>& wide_operands) const {
    const int from = draft_.kernel_of(i);
    for (const NodeRef in : dfg_[i].inputs) {
      const NodeRef o = draft_.owner(in);
      bool in_memory = an_.bound(o) || draft_.kernel_of(o) != from || an_.is_result(o);
      bool only_here = true;
      for (const NodeRef c : draft_.readers(o)) {
        in_memory |= draft_.is_inlined(c) || draft_.kernel_of(c) != from;
        only_here &= c == i;
      }
      if (in_memory) {
        const bool wide = dfg_[o].type.space != Space::param() && dfg_[o].type.row_size() >= dfg_[i].type.row_size();
        if (wide) wide_operands.insert(o);
      } else if (!only_here || is_root(plan_.kernels[from], o) || !sinkable(o, moved, wide_operands)) {
        return false;
      }
    }
    moved.push_back(i);
    return true;
  }

  // Returns whether a value is one of the nodes in `moved`, or a view of one.
  bool moves_with(NodeRef v, const std::vector<NodeRef>& moved) const {
    return std::find(moved.begin(), moved.end(), draft_.owner(v)) != moved.end();
  }

  // Returns whether kernel `to` still has at most kMaxTail nodes after the move of `moved`.
  bool has_room(const std::vector<NodeRef>& moved, int from, int to) const {
    const std::vector<NodeRef>& source = plan_.kernels[from].nodes;
    const auto count = std::count_if(source.begin(), source.end(), [&](NodeRef v) { return moves_with(v, moved); });
    return plan_.kernels[to].nodes.size() + static_cast<size_t>(count) <= kMaxTail;
  }

  void move_nodes(const std::vector<NodeRef>& moved, int from, int to) {
    auto& source = plan_.kernels[from].nodes;
    auto& target = plan_.kernels[to].nodes;
    const auto moves = [&](NodeRef v) { return moves_with(v, moved); };
    for (const NodeRef v : source) {
      if (!moves(v)) continue;
      target.push_back(v);
      draft_.set_kernel(v, to);
    }
    source.erase(std::remove_if(source.begin(), source.end(), moves), source.end());
    if (!source.empty() && moves(plan_.kernels[from].root)) plan_.kernels[from].root = source.front();
    std::sort(target.begin(), target.end());  // operands before their readers
  }

  Draft& draft_;
  Plan& plan_;
  const Dfg& dfg_;
  const Analysis& an_;
};

}  // namespace

void sink_tails(Draft& draft) {
  if (draft.plan.options.fuse) Sinking(draft).run();
}

}  // namespace nacre

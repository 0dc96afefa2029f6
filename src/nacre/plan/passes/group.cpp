// group: gives every node that is not inlined to a kernel, and picks the implementation of the
// kernel (implement.h).
#include <algorithm>
#include <functional>
#include <map>

#include "nacre/plan/edge_dots.h"
#include "nacre/plan/implement.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/passes.h"

namespace nacre {
namespace {

class Grouping {
 public:
  explicit Grouping(Draft& draft)
      : draft_(draft),
        plan_(draft.plan),
        dfg_(draft.plan.dfg),
        an_(draft.an()),
        implement_(draft.plan, draft.an(), draft.inlined) {}

  void run() {
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      // A sum that also computes dot products already has its kernel, because join_dots() has
      // placed it.
      if (!an_.bound(i) && !draft_.is_inlined(i) && draft_.kernel_of(i) < 0) place(i);
    }
  }

 private:
  // Returns whether the node is another view of the bytes of its input: a reshape, or the
  // destinations' own rows if those are all rows.
  bool same_memory(NodeRef i) const {
    const Node& node = dfg_[i];
    if (node.inputs.size() != 1 || draft_.is_inlined(node.inputs[0])) return false;
    const bool own_rows = (node.op == Op::index || node.op == Op::index_add) && node.attr == Attr::self;
    return node.op == Op::reshape || (own_rows && an_.same_rows(node.type.space, dfg_[node.inputs[0]].type.space));
  }

  // Returns whether the node is the destinations' own rows, which are the first of the sources'
  // rows. In memory the node is a view of its input, but the two differ in their numbers of rows.
  bool first_rows(NodeRef i) const {
    const Node& node = dfg_[i];
    return plan_.options.fuse && node.op == Op::index && node.attr == Attr::self && node.type.space.on_vertices() &&
           !draft_.is_inlined(node.inputs[0]);
  }

  void place(NodeRef i) {
    const Node& node = dfg_[i];
    if (same_memory(i)) {
      draft_.share_memory(i, node.inputs[0]);
      const int kernel = draft_.kernel_of(node.inputs[0]);
      draft_.set_kernel(i, kernel);
      if (draft_.computes(kernel, node.inputs[0])) plan_.kernels[kernel].nodes.push_back(i);
      return;
    }
    if (first_rows(i)) {
      draft_.share_memory(i, node.inputs[0]);
      draft_.set_kernel(i, -1);
      return;
    }
    if (share_constant(i) || join_pair(i) || join_dots(i)) return;
    if (an_.row_local(i)) {
      if (plan_.options.fuse && join_tail(i)) return;
      return add(
          implement_.start(i, node.type.space.kind == SpaceKind::edge ? KernelKind::map_edges : KernelKind::map));
    }
    add(implement_.root(i));
  }

  // In a full graph, the degrees and normalisations of every layer are the same values, so layers
  // share the memory of the first one.
  bool share_constant(NodeRef i) {
    if (!an_.constant(i)) return false;
    const auto [first, fresh] = constants_.try_emplace(an_.value_number(i), i);
    if (fresh || dfg_[first->second].type.dims != dfg_[i].type.dims) return false;
    draft_.share_memory(i, first->second);
    draft_.set_kernel(i, draft_.kernel_of(first->second));
    return true;
  }

  void add(Kernel k) {
    draft_.set_kernel(k.root, static_cast<int>(plan_.kernels.size()));
    plan_.kernels.push_back(std::move(k));
  }

  // Adds a node to the kernel that computes the node's partner in the same pass over the edges. The
  // partners are max and argmax; an LSTM and its gates; the two gradients of an LSTM; the gradients
  // of its gates and the states before them. Returns whether there was a partner.
  bool join_pair(NodeRef i) {
    if (!plan_.options.fuse) return false;
    const Node& node = dfg_[i];
    const Op partner = node.op == Op::index_argmax  ? Op::index_max
                       : node.op == Op::lstm_grad_z ? Op::lstm_grad_w
                       : node.op == Op::lstm_grad_w ? Op::lstm_grad_z
                       : node.op == Op::lstm_gates  ? Op::lstm
                       : node.op == Op::lstm_states ? Op::lstm_gates_grad
                                                    : Op::input;
    if (partner == Op::input) return false;
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      Kernel& kernel = plan_.kernels[k];
      const Node& root = dfg_[kernel.root];
      if (root.op != partner || kernel.second >= 0) continue;
      if (node.op == Op::lstm_states ? root.inputs[1] != node.inputs[0] : root.inputs != node.inputs) continue;
      kernel.second = i;
      kernel.nodes.push_back(i);
      draft_.set_kernel(i, static_cast<int>(k));
      return true;
    }
    return false;
  }

  // Gives dot products on edges to the kernel of a sum that gathers the same rows. If that sum
  // comes later in the DFG, its kernel is placed here already. Returns whether there was such a
  // sum.
  bool join_dots(NodeRef dots) {
    if (!plan_.options.fuse || !plan_.options.join_dots) return false;
    const auto beside = find_sum_beside_dots(an_, dots);
    if (!beside || draft_.is_inlined(beside->sum)) return false;
    if (draft_.kernel_of(beside->sum) < 0) {
      Kernel sum = implement_.root(beside->sum);
      if (sum.kind != KernelKind::spmm) return false;
      add(std::move(sum));
    }
    const int at = draft_.kernel_of(beside->sum);
    Kernel& kernel = plan_.kernels[at];
    if (kernel.kind != KernelKind::spmm || kernel.root != beside->sum || kernel.second >= 0) return false;
    auto in = operands<SpmmOperands>(kernel);
    if (made_by(beside->own) >= at || in.weight < 0) return false;
    in.own = beside->own;
    set_operands(kernel, in);
    kernel.second = dots;
    kernel.nodes.push_back(dots);
    draft_.set_kernel(dots, at);
    return true;
  }

  // Returns the kernel after which an operand is available. (A view of other rows is available when
  // the rows are.)
  int made_by(NodeRef in) const { return draft_.kernel_of(draft_.is_inlined(in) ? in : draft_.owner(in)); }

  // Adds a row-wise node to the tail of the last of the kernels that compute its operands, because
  // all operands are ready by then. If that kernel takes no tail, another of these kernels may move
  // behind it and take the node. Returns whether a kernel took the node.
  bool join_tail(NodeRef i) {
    const Node& node = dfg_[i];
    if (node.type.space.kind == SpaceKind::edge) return false;
    int last = -1;
    for (const NodeRef in : node.inputs) last = std::max(last, made_by(in));
    if (last < 0) return false;
    bool joins = can_join(i, last);
    for (const NodeRef in : node.inputs) {
      const int other = made_by(in);
      if (joins || other < 0 || other == last || !can_join(i, other) || read_until(other, last)) continue;
      move_behind(other, last);
      joins = true;
    }
    if (!joins) return false;
    plan_.kernels[last].nodes.push_back(i);
    draft_.set_kernel(i, last);
    return true;
  }

  bool can_join(NodeRef i, int kernel) const {
    const Node& node = dfg_[i];
    const Kernel& k = plan_.kernels[kernel];
    if (!fits_tail(k, dfg_, node.type.row_size()) || k.once != an_.constant(i) || k.nodes.size() >= kMaxTail)
      return false;
    if (!an_.same_rows(dfg_[k.root].type.space, node.type.space)) return false;
    for (const NodeRef in : node.inputs) {
      if (made_by(in) != kernel) continue;
      // Within its own kernel a value is known only row by row, so the kernel must not read it as a
      // whole (an operand in the parameter space), nor from memory.
      if (!an_.same_rows(dfg_[in].type.space, node.type.space) || !draft_.computes(kernel, in)) return false;
    }
    // A standardize reads its moments from memory, so another kernel must compute them.
    return node.op != Op::standardize || draft_.kernel_of(node.inputs[1]) != kernel;
  }

  // Returns whether a kernel after `kernel`, up to `last`, reads what `kernel` computes.
  bool read_until(int kernel, int last) const {
    const std::vector<NodeRef>& nodes = plan_.kernels[kernel].nodes;
    const std::function<bool(NodeRef)> read = [&](NodeRef v) {
      const auto& consumers = an_.consumers(v);
      return std::any_of(consumers.begin(), consumers.end(), [&](NodeRef c) {
        const bool through = draft_.is_inlined(c) || draft_.owner(c) == draft_.owner(v);
        return (draft_.kernel_of(c) > kernel && draft_.kernel_of(c) <= last) || (through && read(c));
      });
    };
    return std::any_of(nodes.begin(), nodes.end(), read);
  }

  void move_behind(int kernel, int last) {
    const auto first = plan_.kernels.begin() + kernel;
    std::rotate(first, first + 1, plan_.kernels.begin() + last + 1);
    for (int& k : draft_.kernels_of) {
      if (k >= kernel && k <= last) k = k == kernel ? last : k - 1;
    }
  }

  Draft& draft_;
  Plan& plan_;
  const Dfg& dfg_;
  const Analysis& an_;
  Implementer implement_;
  std::map<int, NodeRef> constants_;  // from the number of a value to the node that computes it
};

}  // namespace

void group(Draft& draft) { Grouping(draft).run(); }

}  // namespace nacre

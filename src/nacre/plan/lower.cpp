#include "nacre/plan/lower.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "nacre/base/error.h"
#include "nacre/kernel/cpu/tile_plan.h"
#include "nacre/plan/analysis.h"
#include "nacre/plan/cost.h"
#include "nacre/plan/fuse.h"
#include "nacre/plan/implement.h"
#include "nacre/plan/program_builder.h"

namespace nacre {
namespace {

// Nodes of one kernel besides inlined ones: each takes a register and may load two more.
constexpr size_t kMaxTail = 40;
static_assert(3 * kMaxTail + 1 <= cpu::kMaxRegisters);

class Lowering {
 public:
  Lowering(Plan& plan, const Blocks& blocks)
      : plan_(plan),
        dfg_(plan.dfg),
        an_(plan.dfg, blocks, plan.options.hoist),
        n_(static_cast<size_t>(plan.dfg.size())),
        inlined_(plan.options.fuse ? choose_inlined(an_, plan.options) : std::vector<char>(n_, 0)),
        implement_(plan, an_, inlined_) {
    kernel_of_.assign(n_, -1);
    plan_.alias.resize(n_);
    std::iota(plan_.alias.begin(), plan_.alias.end(), 0);
  }

  void run() {
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      if (!an_.bound(i) && !inlined(i)) place(i);
    }
    if (plan_.options.fuse) sink_tails();
    if (plan_.options.fuse && plan_.options.join_products.rows > 0) join_products();
    for (Kernel& k : plan_.kernels) build_programs(k);
    drop_unread();
    find_stored();
    for (Kernel& k : plan_.kernels) finish(k);
  }

 private:
  bool inlined(NodeRef i) const { return inlined_[static_cast<size_t>(i)] != 0; }
  int kernel_of(NodeRef i) const { return kernel_of_[static_cast<size_t>(i)]; }
  NodeRef owner(NodeRef i) const { return plan_.alias[static_cast<size_t>(i)]; }

  // Another view of its input's bytes: a reshape, or the destinations' own rows where those are all rows.
  bool same_memory(NodeRef i) const {
    const Node& node = dfg_[i];
    if (node.inputs.size() != 1 || inlined(node.inputs[0])) return false;
    const bool own_rows = (node.op == Op::index || node.op == Op::index_add) && node.attr == Attr::self;
    return node.op == Op::reshape || (own_rows && an_.same_rows(node.type.space, dfg_[node.inputs[0]].type.space));
  }

  // The destinations' own rows are the first of the sources': in memory a view, but other rows for kernels.
  bool first_rows(NodeRef i) const {
    const Node& node = dfg_[i];
    return plan_.options.fuse && node.op == Op::index && node.attr == Attr::self && !inlined(node.inputs[0]);
  }

  // Whether the kernel has a register for the node. A shared constant (below) only has the memory of its twin.
  bool computed_by(int kernel, NodeRef i) const {
    if (kernel < 0) return false;
    const std::vector<NodeRef>& nodes = plan_.kernels[static_cast<size_t>(kernel)].nodes;
    return std::find(nodes.begin(), nodes.end(), i) != nodes.end();
  }

  // ---- grouping
  void place(NodeRef i) {
    const Node& node = dfg_[i];
    if (same_memory(i)) {
      plan_.alias[static_cast<size_t>(i)] = owner(node.inputs[0]);
      kernel_of_[static_cast<size_t>(i)] = kernel_of(node.inputs[0]);
      if (computed_by(kernel_of(i), node.inputs[0])) plan_.kernels[kernel_of(i)].nodes.push_back(i);
      return;
    }
    if (first_rows(i)) {
      plan_.alias[static_cast<size_t>(i)] = owner(node.inputs[0]);
      kernel_of_[static_cast<size_t>(i)] = -1;
      return;
    }
    if (share_constant(i) || join_pair(i)) return;
    if (an_.row_local(i)) {
      if (plan_.options.fuse && join_tail(i)) return;
      return add(
          implement_.start(i, node.type.space.kind == SpaceKind::edge ? KernelKind::map_edges : KernelKind::map));
    }
    add(implement_.root(i));
  }

  // In a full graph every layer's degrees and normalisations are the same values: layers share the first one's memory.
  bool share_constant(NodeRef i) {
    if (!an_.constant(i)) return false;
    const auto [slot, fresh] = constants_.try_emplace(an_.value_number(i), i);
    if (fresh || dfg_[slot->second].type.dims != dfg_[i].type.dims) return false;
    plan_.alias[static_cast<size_t>(i)] = owner(slot->second);
    kernel_of_[static_cast<size_t>(i)] = kernel_of(slot->second);
    return true;
  }

  void add(Kernel k) {
    kernel_of_[static_cast<size_t>(k.root)] = static_cast<int>(plan_.kernels.size());
    plan_.kernels.push_back(std::move(k));
  }

  // Two results of one pass: max and argmax, an LSTM and its gates, its two gradients, those of its gates and the
  // states before them.
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
      kernel_of_[static_cast<size_t>(i)] = static_cast<int>(k);
      return true;
    }
    return false;
  }

  static bool takes_tail(KernelKind kind) {
    return kind == KernelKind::map || kind == KernelKind::reduce || kind == KernelKind::spmm ||
           kind == KernelKind::matmul || kind == KernelKind::gtask;
  }

  // The kernel after which an operand is there. (A view of other rows is there when the rows are.)
  int made_by(NodeRef in) const { return kernel_of(inlined(in) ? in : owner(in)); }

  // A row-wise node joins the last kernel among those that compute its operands: all others are ready by then. If that
  // one takes no tail, another may come after it.
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
    plan_.kernels[static_cast<size_t>(last)].nodes.push_back(i);
    kernel_of_[static_cast<size_t>(i)] = last;
    return true;
  }

  bool can_join(NodeRef i, int kernel) const {
    const Node& node = dfg_[i];
    const Kernel& k = plan_.kernels[static_cast<size_t>(kernel)];
    if (!takes_tail(k.kind) || k.once != an_.constant(i) || k.nodes.size() >= kMaxTail) return false;
    if (!an_.same_rows(dfg_[k.root].type.space, node.type.space)) return false;
    for (const NodeRef in : node.inputs) {
      if (made_by(in) != kernel) continue;
      // A value of this very kernel is only known row by row: it must not be read as a whole (a parameter-space
      // operand), nor from memory.
      if (!an_.same_rows(dfg_[in].type.space, node.type.space) || !computed_by(kernel, in)) return false;
    }
    // Moments are read from memory, also by a program over parameters.
    return node.op != Op::standardize || kernel_of(node.inputs[1]) != kernel;
  }

  // Whether a kernel after this one, up to `last`, reads what it computes.
  bool read_until(int kernel, int last) const {
    const std::vector<NodeRef>& nodes = plan_.kernels[static_cast<size_t>(kernel)].nodes;
    const std::function<bool(NodeRef)> read = [&](NodeRef v) {
      const auto& consumers = an_.consumers(v);
      return std::any_of(consumers.begin(), consumers.end(), [&](NodeRef c) {
        const bool through = inlined(c) || owner(c) == owner(v);
        return (kernel_of(c) > kernel && kernel_of(c) <= last) || (through && read(c));
      });
    };
    return std::any_of(nodes.begin(), nodes.end(), read);
  }

  void move_behind(int kernel, int last) {
    const auto first = plan_.kernels.begin() + kernel;
    std::rotate(first, first + 1, plan_.kernels.begin() + last + 1);
    for (int& k : kernel_of_) {
      if (k >= kernel && k <= last) k = k == kernel ? last : k - 1;
    }
  }

  // ---- sinking
  // A tail node that only one later kernel's tail reads moves there, if what it needs is in memory anyway: one value
  // less to write, to read and to keep. Readers first, so that chains move as a whole.
  void sink_tails() {
    for (NodeRef i = dfg_.size() - 1; i >= 0; --i) {
      const int to = sink_target(i);
      std::vector<NodeRef> moved;
      std::set<NodeRef> wide_operands;
      if (to < 0 || !sinkable(i, moved, wide_operands) || wide_operands.size() > 1) continue;
      move_nodes(moved, kernel_of(i), to);
    }
  }

  // Who reads a node's memory, looking through other views of it.
  void add_readers(NodeRef i, std::vector<NodeRef>& readers) const {
    for (const NodeRef c : an_.consumers(i)) {
      const bool same_bytes = !inlined(c) && owner(c) == owner(i);
      if (same_bytes) add_readers(c, readers);
      if (!same_bytes || an_.is_result(c)) {
        readers.push_back(c);
      }
    }
  }
  std::vector<NodeRef> readers(NodeRef i) const {
    std::vector<NodeRef> list;
    add_readers(i, list);
    return list;
  }

  // The kernel a tail node could move to, or -1.
  int sink_target(NodeRef i) const {
    const int from = kernel_of(i);
    if (from < 0 || inlined(i) || owner(i) != i || !an_.row_local(i) || an_.is_result(i)) return -1;
    const Kernel& k = plan_.kernels[static_cast<size_t>(from)];
    if (!takes_tail(k.kind) || i == k.root || i == k.second || dfg_[i].type.space == Space::param()) return -1;
    int to = -1;
    for (const NodeRef c : readers(i)) {
      const int at = inlined(c) ? -1 : kernel_of(c);
      if (at < 0 || at == from || (to >= 0 && at != to)) return -1;
      const Kernel& reader = plan_.kernels[static_cast<size_t>(at)];
      const bool in_tail =
          takes_tail(reader.kind) && c != reader.second && (c != reader.root || reader.kind == KernelKind::map);
      if (!in_tail || reader.once != k.once || !an_.same_rows(dfg_[reader.root].type.space, dfg_[i].type.space))
        return -1;
      to = at;
    }
    return to;
  }

  // Whether the node's operands are in memory whatever happens to it; operands only it reads move along.
  bool sinkable(NodeRef i, std::vector<NodeRef>& moved, std::set<NodeRef>& wide_operands) const {
    const int from = kernel_of(i);
    for (const NodeRef in : dfg_[i].inputs) {
      const NodeRef o = owner(in);
      bool in_memory = an_.bound(o) || kernel_of(o) != from || an_.is_result(o);
      bool only_here = true;
      for (const NodeRef c : readers(o)) {
        in_memory |= inlined(c) || kernel_of(c) != from;
        only_here &= c == i;
      }
      if (in_memory) {
        const bool wide = dfg_[o].type.space != Space::param() && dfg_[o].type.row_size() >= dfg_[i].type.row_size();
        if (wide) wide_operands.insert(o);
      } else if (!only_here || o == plan_.kernels[static_cast<size_t>(from)].root ||
                 !sinkable(o, moved, wide_operands)) {
        return false;
      }
    }
    moved.push_back(i);
    return true;
  }

  void move_nodes(const std::vector<NodeRef>& moved, int from, int to) {
    auto& source = plan_.kernels[static_cast<size_t>(from)].nodes;
    auto& target = plan_.kernels[static_cast<size_t>(to)].nodes;
    const auto moves = [&](NodeRef v) { return std::find(moved.begin(), moved.end(), owner(v)) != moved.end(); };
    for (const NodeRef v : source) {
      if (!moves(v)) continue;
      target.push_back(v);
      kernel_of_[static_cast<size_t>(v)] = to;
    }
    source.erase(std::remove_if(source.begin(), source.end(), moves), source.end());
    std::sort(target.begin(), target.end());  // operands before their readers
  }

  // ---- joining
  // A product that the tail of another only adds to it is computed there, and so is one that is added to products by
  // type: it never reaches memory.
  void join_products() {
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      const JoinedProducts& which = plan_.options.join_products;
      const ValueType& type = dfg_[plan_.kernels[k].root].type;
      if (plan_.kernels[k].kind != KernelKind::matmul || an_.rows(type.space) < which.rows) continue;
      if (which.columns > 0 && (type.row_size() > which.columns || type.row_size() % 2 != 0)) continue;
      const std::vector<NodeRef> nodes = plan_.kernels[k].nodes;
      std::any_of(nodes.begin(), nodes.end(), [&](NodeRef v) { return dfg_[v].op == Op::add && join_terms(v, k); });
    }
  }

  bool join_terms(NodeRef sum, size_t to) {
    for (const NodeRef in : dfg_[sum].inputs) {
      const int from = kernel_of(in);
      if (inlined(in) || from < 0 || static_cast<size_t>(from) >= to || !joinable(owner(in), sum, to)) continue;
      Kernel& term = plan_.kernels[static_cast<size_t>(from)];
      const Kernel& target = plan_.kernels[to];
      // Products by type stay what the kernel is made around; of two alike it is the later one.
      Kernel joined = term.kind == KernelKind::typed_reduce ? term : target;
      joined.nodes = term.nodes;
      joined.nodes.insert(joined.nodes.end(), target.nodes.begin(), target.nodes.end());
      std::sort(joined.nodes.begin(), joined.nodes.end());  // operands before their readers
      const std::vector<char> read = read_outside(joined);
      RowProgram tail = tail_program(joined, &read);
      if (read[static_cast<size_t>(joined.root)] || !take_product(tail) || has_products(tail)) continue;
      for (const NodeRef v : term.nodes) kernel_of_[static_cast<size_t>(v)] = static_cast<int>(to);
      term.nodes.clear();
      plan_.kernels[to] = std::move(joined);
      return true;
    }
    return false;
  }

  // Nodes of the kernel that must be in memory: results, and what others read.
  std::vector<char> read_outside(const Kernel& k) const {
    std::vector<char> read(n_, 0);
    for (const NodeRef v : k.nodes) {
      const auto outside = [&](NodeRef c) {
        const bool view = owner(c) == owner(v);  // listed because it is a result
        return inlined(c) || view || std::find(k.nodes.begin(), k.nodes.end(), c) == k.nodes.end();
      };
      const std::vector<NodeRef> all = readers(v);
      read[static_cast<size_t>(v)] = an_.is_result(v) || std::any_of(all.begin(), all.end(), outside) ? 1 : 0;
    }
    return read;
  }

  // Nothing else is computed by the product's kernel, and nobody else reads it.
  bool joinable(NodeRef product, NodeRef sum, size_t to) const {
    const Kernel& kernel = plan_.kernels[static_cast<size_t>(kernel_of(product))];
    const Kernel& target = plan_.kernels[to];
    if (kernel.root != product || kernel.once != target.once) return false;
    if (kernel.kind != KernelKind::matmul && !joinable_by_type(kernel, target)) return false;
    if (!an_.same_rows(dfg_[product].type.space, dfg_[target.root].type.space)) return false;
    const auto alone = [&](NodeRef v) { return owner(v) == product && !an_.is_result(v); };
    return std::all_of(kernel.nodes.begin(), kernel.nodes.end(), alone) &&
           readers(product) == std::vector<NodeRef>{sum} && kernel.nodes.size() + target.nodes.size() < kMaxTail;
  }

  // All of one shape, so that they can follow one another.
  bool joinable_by_type(const Kernel& kernel, const Kernel& target) const {
    return plan_.options.join_products.typed && kernel.kind == KernelKind::typed_reduce &&
           dfg_[kernel.args[0]].type.space.is_pair() && kernel.transpose == target.transpose &&
           dfg_[kernel.args[1]].type.dims == dfg_[target.args[1]].type.dims;
  }

  // ---- programs
  // What a program over edges recomputes: inlined nodes, and the kernel's own root if that is row-local.
  void build_programs(Kernel& k) {
    const Node& root = dfg_[k.root];
    const std::set<NodeRef> own(k.nodes.begin(), k.nodes.end());
    const auto inside = [&](NodeRef v) { return inlined(v) || (own.contains(v) && an_.row_local(v)); };
    NodeRef value = -1;
    Space domain = root.type.space;
    switch (k.kind) {
      case KernelKind::map:
      case KernelKind::map_edges:
        value = k.root;
        break;
      case KernelKind::reduce:
      case KernelKind::gtask:
      case KernelKind::gtask_grad:
      case KernelKind::softmax:
      case KernelKind::softmax_grad:
      case KernelKind::column_sum:
        value = root.inputs[0];
        domain = dfg_[value].type.space;
        break;
      default:
        break;
    }
    const bool map = k.kind == KernelKind::map || k.kind == KernelKind::map_edges;
    if (value >= 0) {
      ProgramBuilder builder(an_, plan_.alias, domain, inside);
      k.value = builder.value(value);
      if (k.kind == KernelKind::gtask_grad) k.second_value = builder.value(root.inputs[1]);
      if (map) {
        for (const NodeRef v : k.nodes) builder.value(v);
      }
      k.program = std::move(builder).finish();
    }
    if (!map && k.nodes.size() > 1) k.tail = tail_program(k, nullptr);
    collect_reads(k);
  }

  // Of the nodes of a kernel: a product that is not its root has been joined to it.
  bool is_joined(NodeRef v) const { return dfg_[v].op == Op::matmul || dfg_[v].op == Op::matmul_t; }

  RowProgram tail_program(const Kernel& k, const std::vector<char>* stored) const {
    const std::set<NodeRef> own(k.nodes.begin(), k.nodes.end());
    ProgramBuilder builder(an_, plan_.alias, dfg_[k.root].type.space,
                           [&](NodeRef v) { return own.contains(v) && (an_.row_local(v) || is_joined(v)); });
    builder.set_root(k.root);
    for (const NodeRef v : k.nodes) {
      if (v == k.root || v == k.second || owner(v) != v) continue;
      builder.value(v);
      if (stored != nullptr && owner(v) == v && (*stored)[static_cast<size_t>(v)]) builder.store(v);
    }
    return std::move(builder).finish();
  }

  void collect_reads(Kernel& k) const {
    std::set<NodeRef> reads;
    for (const NodeRef a : k.args) {
      if (a >= 0) reads.insert(owner(a));
    }
    for (const RowProgram* p : {&k.program, &k.tail}) {
      for (const NodeRef o : p->operands) reads.insert(o);
    }
    // Inlined nodes belong to the kernels that recompute them; list them once for reports.
    for (const NodeRef v : k.nodes) reads.erase(v);
    k.reads.assign(reads.begin(), reads.end());
  }

  // A matched kernel may reach through a value to what that was made of, and leave it without a reader.
  void drop_unread() {
    std::set<NodeRef> needed;
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      if (an_.is_result(i)) needed.insert(owner(i));
    }
    for (size_t k = plan_.kernels.size(); k-- > 0;) {  // readers first
      Kernel& kernel = plan_.kernels[k];
      if (std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](NodeRef v) { return needed.contains(v); })) {
        needed.insert(kernel.reads.begin(), kernel.reads.end());
      } else {
        plan_.kernels.erase(plan_.kernels.begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
  }

  void find_stored() {
    plan_.stored.assign(n_, 0);
    for (const Kernel& k : plan_.kernels) {
      for (const NodeRef r : k.reads) plan_.stored[static_cast<size_t>(r)] = 1;
    }
    for (NodeRef i = 0; i < dfg_.size(); ++i) {
      if (an_.is_result(i)) plan_.stored[static_cast<size_t>(owner(i))] = 1;
    }
    for (const Kernel& k : plan_.kernels) {
      // Kinds without a tail always write their root; so does a kernel that has nothing but its root.
      if (!takes_tail(k.kind) && k.tail.empty()) plan_.stored[static_cast<size_t>(k.root)] = 1;
      if (k.second >= 0) plan_.stored[static_cast<size_t>(k.second)] = 1;
    }
  }

  void finish(Kernel& k) {
    for (const NodeRef v : k.nodes) {
      if (owner(v) == v && plan_.stored[static_cast<size_t>(v)]) k.writes.push_back(v);
    }
    if (k.kind == KernelKind::map || k.kind == KernelKind::map_edges) {
      const std::set<NodeRef> own(k.nodes.begin(), k.nodes.end());
      ProgramBuilder builder(an_, plan_.alias, dfg_[k.root].type.space,
                             [&](NodeRef v) { return inlined(v) || own.contains(v); });
      for (const NodeRef v : k.nodes) {
        builder.value(v);
        if (owner(v) == v && plan_.stored[static_cast<size_t>(v)]) builder.store(v);
      }
      k.program = std::move(builder).finish();
      k.value = -1;
    } else if (k.nodes.size() > 1) {
      k.tail = tail_program(k, &plan_.stored);
    }
    estimate_cost(k, plan_, an_);
  }

  Plan& plan_;
  const Dfg& dfg_;
  Analysis an_;
  size_t n_;
  std::vector<char> inlined_;
  Implementer implement_;
  std::vector<int> kernel_of_;
  std::map<int, NodeRef> constants_;  // value number → the node that computes it
};

}  // namespace

void lower(Plan& plan, const Blocks& blocks) { Lowering(plan, blocks).run(); }

SummedProducts summed_products(const Plan& plan, const Kernel& kernel) {
  SummedProducts sum = {{{kernel.args[0], kernel.args[1], kernel.transpose}}, kernel.tail};
  if (plan.stored[static_cast<size_t>(kernel.root)] != 0) return sum;
  if (const auto second = take_product(sum.tail)) sum.inputs.push_back(*second);
  return sum;
}

}  // namespace nacre

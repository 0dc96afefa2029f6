#include "nacre/plan/implement.h"

#include <algorithm>
#include <functional>

#include "nacre/plan/match.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

Direction direction_of(const Node& sum, Space from) {
  const bool dst = sum.attr == Attr::dst || sum.attr == Attr::pair_dst;
  if (sum.type.space.is_pair()) return dst ? Direction::by_dst_pair : Direction::by_src_pair;
  if (from.is_pair()) return dst ? Direction::pairs_of_dst : Direction::pairs_of_src;
  return dst ? Direction::by_dst : Direction::by_src;
}

void set_reduction(Kernel& k, const Dfg& dfg) {
  const Node& node = dfg[k.root];
  k.direction = direction_of(node, dfg[node.inputs[0]].type.space);
  k.reduce_op = node.op == Op::index_mean ? ReduceOp::mean : node.op == Op::index_add ? ReduceOp::sum : ReduceOp::max;
}

// Returns the edge factor of gathered rows, or -1 if there is none.
NodeRef factor_of(const GatherProduct& match) { return match.factors.empty() ? -1 : match.factors[0]; }

// Returns the parameter behind a weight, looking through what is computed from it.
std::string parameter_of(const Dfg& dfg, NodeRef i) {
  while (dfg[i].op != Op::param && !dfg[i].inputs.empty()) i = dfg[i].inputs[0];
  return dfg[i].name.empty() ? "%" + std::to_string(i) : dfg[i].name;
}

}  // namespace

std::string kernel_key(const Dfg& dfg, const Kernel& kernel) {
  const Node& root = dfg[kernel.root];
  if (root.op == Op::lstm || root.op == Op::lstm_gates) return "lstm@" + parameter_of(dfg, root.inputs[1]);
  if (root.op == Op::lstm_grad_z || root.op == Op::lstm_grad_w || root.op == Op::lstm_gates_grad) {
    return "lstm@" + parameter_of(dfg, root.inputs[2]);
  }
  // Finds the first product of the expression that is reduced.
  NodeRef product = -1;
  const std::function<void(NodeRef)> find = [&](NodeRef i) {
    const Node& node = dfg[i];
    if (product >= 0 || node.type.space.kind != SpaceKind::edge) return;
    if (node.op == Op::matmul || node.op == Op::matmul_t || node.op == Op::typed_matmul ||
        node.op == Op::typed_matmul_t) {
      product = i;
      return;
    }
    for (const NodeRef in : node.inputs) find(in);
  };
  for (const NodeRef in : root.inputs) find(in);
  const std::string name(op_info(product >= 0 ? dfg[product].op : root.op).name);
  if (product >= 0) return name + "@" + parameter_of(dfg, dfg[product].inputs[1]);
  for (const auto& [output, node] : dfg.outputs()) {
    if (node == kernel.root && output.starts_with("grad:")) return name + "@" + output.substr(5);
  }
  return name + "@%" + std::to_string(kernel.root);
}

int walked_layer(const Dfg& dfg, const Kernel& kernel) {
  const Node& root = dfg[kernel.root];
  if (root.op == Op::lstm) return root.type.space.layer - 1;
  if (root.op == Op::lstm_grad_z || root.op == Op::lstm_grad_w) return dfg[root.inputs[1]].type.space.layer;
  for (const NodeRef in : root.inputs) {
    if (dfg[in].type.space.is_typed()) return dfg[in].type.space.layer;
  }
  return root.type.space.layer;
}

Kernel Implementer::start(NodeRef i, KernelKind kind, std::string why) const {
  Kernel k;
  k.kind = kind;
  k.root = i;
  k.nodes = {i};
  k.once = an_.constant(i);
  k.why = std::move(why);
  return k;
}

Kernel Implementer::with_inputs(NodeRef i, KernelKind kind, std::string why) const {
  Kernel k = start(i, kind, std::move(why));
  k.args = dfg_[i].inputs;
  return k;
}

NodeRef Implementer::behind_gather(NodeRef i) const { return inlined(i) ? dfg_[i].inputs[0] : i; }

Kernel Implementer::root(NodeRef i) const {
  const Node& node = dfg_[i];
  switch (node.op) {
    case Op::index_add:
      return sum(i);
    case Op::index_mean:
    case Op::index_max:
    case Op::index_argmax:
      return reduction(i);
    case Op::edge_softmax:
      return start(i, KernelKind::softmax);
    case Op::edge_softmax_grad: {
      Kernel k = start(i, KernelKind::softmax_grad);
      set_operands(k, SoftmaxGradOperands{.y = node.inputs[1]});
      return k;
    }
    case Op::matmul:
    case Op::matmul_t: {
      Kernel k = with_inputs(i, KernelKind::matmul);
      k.transpose = node.op == Op::matmul_t;
      return k;
    }
    case Op::typed_matmul:
    case Op::typed_matmul_t: {
      Kernel k = start(i, KernelKind::typed_rows);
      k.transpose = node.op == Op::typed_matmul_t;
      set_operands(k, ProductOperands{.x = behind_gather(node.inputs[0]), .weight = node.inputs[1]});
      return k;
    }
    case Op::weight_grad:
      return weight_grad(i);
    case Op::typed_weight_grad:
      return typed_grad(i);
    case Op::column_sum:
      return start(i, KernelKind::column_sum);
    case Op::lstm:
    case Op::lstm_gates:
      return sequence(i, KernelKind::lstm);
    case Op::lstm_grad_z:
    case Op::lstm_grad_w:
      return sequence(i, KernelKind::lstm_grad);
    case Op::lstm_gates_grad:
      return sequence(i, KernelKind::lstm_gates_grad);
    case Op::nll:
    case Op::nll_grad:
    case Op::bce:
    case Op::bce_grad:
      return with_inputs(i, KernelKind::loss);
    case Op::column_moments:
    case Op::standardize_grad:
      return with_inputs(i, KernelKind::moments);
    case Op::join_rows:
    case Op::slice_rows:
      return with_inputs(i, KernelKind::copy);
    case Op::exchange:
    case Op::exchange_add:
    case Op::all_reduce:
    case Op::to_columns:
    case Op::to_rows:
      return with_inputs(i, KernelKind::exchange);
    default:
      return with_inputs(i, KernelKind::reference, "no faster implementation of " + std::string(op_info(node.op).name));
  }
}

Kernel Implementer::sum(NodeRef i) const {
  const Node& node = dfg_[i];
  if (node.attr == Attr::self) return with_inputs(i, KernelKind::copy);
  if (node.attr == Attr::type) return with_inputs(i, KernelKind::reference, "sums by type have only the plain version");
  return dfg_[node.inputs[0]].type.space.is_pair() ? sum_of_pairs(i) : reduction(i);
}

Kernel Implementer::sum_of_pairs(NodeRef i) const {
  const Node& node = dfg_[i];
  std::string why = "fusion is off";
  const auto match = options_.fuse ? match_pair_sum(dfg_, i, &why) : std::nullopt;
  if (match && inlined(match->typed)) {
    Kernel k = start(i, KernelKind::typed_reduce);
    k.direction = node.attr == Attr::dst ? Direction::by_dst : Direction::by_src;
    k.transpose = dfg_[match->typed].op == Op::typed_matmul_t;
    const NodeRef sums = dfg_[match->typed].inputs[0];
    TypedReduceOperands in = {.x = sums, .weight = dfg_[match->typed].inputs[1]};
    if (inlined(sums)) {
      in.x = match->gather.x;
      in.scale = factor_of(match->gather);
    }
    set_operands(k, in);
    return k;
  }
  if (match && options_.keep_sums > 0) why = "the sums over pairs are in memory";
  Kernel k = start(i, KernelKind::spmm, why);
  set_reduction(k, dfg_);
  set_operands(k, SpmmOperands{.x = node.inputs[0]});
  return k;
}

bool Implementer::has_product(NodeRef edge_value) const {
  if (!inlined(edge_value)) return false;
  if (an_.matrix_on_edges(edge_value)) return true;
  const auto& inputs = dfg_[edge_value].inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](NodeRef in) { return has_product(in); });
}

// Only the kernels that know pairs read rows of pairs; programs never do.
bool Implementer::reads_pairs(NodeRef edge_value) const {
  std::string why;
  const auto match = inlined(edge_value) ? match_gather(dfg_, edge_value, &why) : std::nullopt;
  return match && match->pair;
}

PartitionTable Implementer::table_of(const Kernel& kernel, const PartitionTable& standard) const {
  const auto own = options_.tables.find(kernel_key(dfg_, kernel));
  if (own != options_.tables.end()) return PartitionTable::parse(own->second);
  return options_.table.empty() ? standard : options_.table;
}

// Weighted sums of gathered rows have a kernel of their own. Everything else is reduced by its
// program.
Kernel Implementer::reduction(NodeRef i) const {
  const Node& node = dfg_[i];
  const NodeRef value = node.inputs[0];
  const bool sums = node.op == Op::index_add || node.op == Op::index_mean;
  const bool to_vertices = node.type.space.on_vertices();
  std::string why = sums ? "the edge value is in memory" : "reduces by maximum";
  if (!options_.fuse) why = "fusion is off";
  if (has_product(value)) return gtasks(i, "multiplies edge rows by a matrix");
  if (to_vertices && options_.fuse && !options_.table.empty() && !reads_pairs(value)) {
    const bool dst = node.attr == Attr::dst;
    const PartitionTable table = dst ? options_.table : options_.table.mirrored();
    if (!table.owns(dst ? Location::dst : Location::src)) return gtasks(i, "the table splits rows");
  }
  if (sums && options_.fuse && inlined(value)) {
    const auto match = match_gather(dfg_, value, &why);
    if (match && match->end == node.attr) {
      why = "gathers the end it reduces to";
    } else if (match && match->factors.size() > 1) {
      why = "has several edge factors";
    } else if (match && !match->factors.empty() && inlined(match->factors[0])) {
      why = "the edge factor is not in memory";
    } else if (match) {
      Kernel k = start(i, KernelKind::spmm);
      set_reduction(k, dfg_);
      set_operands(k, SpmmOperands{.x = match->x, .weight = factor_of(*match)});
      k.heads = match->factors.empty() ? 1 : dfg_[match->factors[0]].type.row_size();
      return k;
    }
  }
  Kernel k = start(i, KernelKind::reduce, why);
  set_reduction(k, dfg_);
  return k;
}

Kernel Implementer::gtasks(NodeRef i, std::string why) const {
  Kernel k = start(i, KernelKind::gtask, std::move(why));
  set_reduction(k, dfg_);
  const PartitionTable table = table_of(k, PartitionTable::parse("dst-id=256,edge-type=1"));
  k.table = k.direction == Direction::by_dst ? table : table.mirrored();
  return k;
}

Kernel Implementer::weight_grad(NodeRef i) const {
  const Node& node = dfg_[i];
  if (inlined(node.inputs[0]) || inlined(node.inputs[1])) {
    Kernel k = start(i, KernelKind::gtask_grad, "a side is an expression over edges");
    k.table = table_of(k, PartitionTable::parse("edge-id=256"));
    return k;
  }
  return with_inputs(i, KernelKind::weight_grad);
}

Kernel Implementer::typed_grad(NodeRef i) const {
  const Node& node = dfg_[i];
  std::string why = "fusion is off";
  auto match = options_.fuse ? match_pair_grad(dfg_, i, &why) : std::nullopt;
  if (match && options_.keep_sums > 0 && !inlined(node.inputs[match->row_is_x ? 1 : 0])) {
    why = "the sums over pairs are in memory";
    match.reset();
  }
  if (match) {
    Kernel k = start(i, KernelKind::typed_weight_grad);
    const Space pairs = dfg_[node.inputs[0]].type.space;
    k.direction = pairs.kind == SpaceKind::pair_dst ? Direction::by_dst : Direction::by_src;
    set_operands(k, TypedWeightGradOperands{.x = match->row_is_x ? match->by_row : match->summed.x,
                                            .gradient = match->row_is_x ? match->summed.x : match->by_row,
                                            .scale = factor_of(match->summed)});
    return k;
  }
  const bool on_edges = dfg_[node.inputs[0]].type.space.kind == SpaceKind::edge;
  if (on_edges && (inlined(node.inputs[0]) || inlined(node.inputs[1]))) {
    Kernel k = start(i, KernelKind::gtask_grad, "a side is an expression over edges");
    k.table = table_of(k, PartitionTable::parse("edge-type=1,edge-id=256"));
    return k;
  }
  Kernel k = start(i, KernelKind::typed_rows_grad, why);
  set_operands(k, WeightGradOperands{behind_gather(node.inputs[0]), behind_gather(node.inputs[1])});
  return k;
}

Kernel Implementer::sequence(NodeRef i, KernelKind kind) const {
  Kernel k = with_inputs(i, kind);
  k.table = PartitionTable::parse("dst-id=" + std::to_string(kSequencesAtATime) + ",dst-degree=min");
  const PartitionTable wanted = table_of(k, k.table);
  if (wanted.owns(Location::dst)) {
    k.table = wanted;
  } else {
    k.why = "a sequence needs all edges of its destination in one gTask: " + wanted.text() + " does not hold here";
  }
  return k;
}

}  // namespace nacre

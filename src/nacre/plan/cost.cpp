#include "nacre/plan/cost.h"
#include "nacre/plan/operands.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace nacre {
namespace {

// Returns the floating-point operations of one node over all its rows (transcendental functions
// count as one).
double node_flops(const Analysis& an, NodeRef i) {
  const Node& node = an.dfg()[i];
  const auto out = static_cast<double>(an.elements(i));
  const auto in = node.inputs.empty() ? 0.0 : static_cast<double>(an.elements(node.inputs[0]));
  switch (node.op) {
    case Op::matmul:
    case Op::typed_matmul:
    case Op::matmul_t:
    case Op::typed_matmul_t:
      return 2 * in * static_cast<double>(node.type.dims[0]);
    case Op::weight_grad:
    case Op::typed_weight_grad:
      return 2 * in * static_cast<double>(node.type.dims[1]);
    case Op::lstm_gates:  // computed with the LSTM
      return 0;
    case Op::lstm:
    case Op::lstm_grad_z:
    case Op::lstm_grad_w:
    case Op::lstm_gates_grad: {
      const NodeRef z = node.inputs[node.op == Op::lstm ? 0 : 1];
      const int64_t gates = an.dfg()[z].type.dims[0];
      const auto edges = static_cast<double>(an.rows(Space::edge(an.dfg()[z].type.space.layer)));
      return edges * 2 * static_cast<double>(gates) * static_cast<double>(gates) / 4;
    }
    case Op::index:
    case Op::reshape:
    case Op::expand:
    case Op::concat:
    case Op::slice:
    case Op::pad:
    case Op::join_rows:
    case Op::slice_rows:
    case Op::input:
    case Op::param:
      return 0;
    case Op::index_add:
    case Op::index_mean:
    case Op::index_max:
    case Op::index_argmax:
    case Op::column_sum:
    case Op::row_sum:
    case Op::l2:
      return in;
    case Op::edge_softmax:
    case Op::edge_softmax_grad:
    case Op::row_normalize:
    case Op::row_normalize_grad:
    case Op::log_softmax:
    case Op::log_softmax_grad:
      return 4 * out;
    default:
      return out;
  }
}

bool walks_edges(KernelKind kind) {
  switch (kind) {
    case KernelKind::map_edges:
    case KernelKind::reduce:
    case KernelKind::spmm:
    case KernelKind::typed_reduce:
    case KernelKind::typed_weight_grad:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
    case KernelKind::lstm:
    case KernelKind::lstm_grad:
    case KernelKind::lstm_gates_grad:
    case KernelKind::gtask:
    case KernelKind::gtask_grad:
      return true;
    default:
      return false;
  }
}

// An order in which a kernel walks the edges, and the number of arrays that the order takes in
// memory, each with one number for each edge.
struct WalkedOrder {
  Direction direction = Direction::by_dst;
  SpaceKind columns = SpaceKind::vertex;
  int64_t arrays = 1;
  NodeRef weights = -1;
};

Direction pairs_of(Direction rows) {
  return rows == Direction::by_dst ? Direction::by_dst_pair : Direction::by_src_pair;
}

std::optional<WalkedOrder> order_of(const Kernel& k, const Dfg& dfg) {
  WalkedOrder order;
  order.direction = k.direction;
  switch (k.kind) {
    case KernelKind::spmm: {
      const auto in = operands<SpmmOperands>(k);
      order.columns = dfg[in.x].type.space.kind;
      order.weights = in.weight;
      break;
    }
    case KernelKind::typed_reduce: {
      const auto in = operands<TypedReduceOperands>(k);
      if (dfg[in.x].type.space.is_pair()) return std::nullopt;
      order.direction = pairs_of(k.direction);
      order.weights = in.scale;
      break;
    }
    case KernelKind::typed_weight_grad: {
      const auto in = operands<TypedWeightGradOperands>(k);
      if (dfg[in.x].type.space.is_pair()) return std::nullopt;
      order.direction = pairs_of(k.direction);
      order.weights = in.scale;
      break;
    }
    case KernelKind::reduce:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
      break;
    default:
      return std::nullopt;
  }
  if (order.direction == Direction::pairs_of_dst || order.direction == Direction::pairs_of_src) return std::nullopt;
  if (order.direction == Direction::by_dst_pair || order.direction == Direction::by_src_pair) order.arrays = 2;
  // Weights of edges already lie in the order by destinations, so they need no second copy.
  if (order.direction == Direction::by_dst) order.weights = -1;
  return order;
}

}  // namespace

int64_t order_bytes(const Plan& plan, const Blocks& blocks) {
  std::set<std::tuple<const void*, Direction, SpaceKind, NodeRef>> known;
  int64_t bytes = 0;
  for (const Kernel& k : plan.kernels) {
    const auto order = k.once ? std::nullopt : order_of(k, plan.dfg);
    if (!order) continue;
    const Graph& graph = blocks.layer(walked_layer(plan.dfg, k));
    const void* edges = graph.row_ptr().data();
    const int64_t array = graph.num_edges() * 4;
    if (known.emplace(edges, order->direction, order->columns, -1).second) bytes += order->arrays * array;
    const NodeRef weights = order->weights < 0 ? -1 : plan.alias[order->weights];
    const bool constant = std::any_of(plan.kernels.begin(), plan.kernels.end(), [&](const Kernel& other) {
      return other.once && std::find(other.writes.begin(), other.writes.end(), weights) != other.writes.end();
    });
    if (constant && known.emplace(edges, order->direction, SpaceKind::edge, weights).second)
      bytes += array * plan.dfg[weights].type.row_size();
  }
  return bytes;
}

int64_t once_bytes(const Plan& plan, const Blocks& blocks) {
  int64_t bytes = 0;
  for (const Kernel& k : plan.kernels) {
    for (const NodeRef w : k.writes) bytes += k.once ? bytes_in_memory(plan, blocks, w) : 0;
  }
  return bytes;
}

void estimate_cost(Kernel& k, const Plan& plan, const Analysis& an) {
  const auto count = [&](NodeRef i) {
    k.floor_bytes += static_cast<double>(an.bytes(i)) / (plan.is_narrow(i) ? 2 : 1);
  };
  std::for_each(k.reads.begin(), k.reads.end(), count);
  std::for_each(k.writes.begin(), k.writes.end(), count);
  for (const NodeRef v : k.nodes) k.flops += node_flops(an, v);
  if (!walks_edges(k.kind)) return;
  const Node& root = plan.dfg[k.root];
  const auto edges = static_cast<double>(an.rows(Space::edge(walked_layer(plan.dfg, k))));
  k.floor_bytes += edges * 4;
  if (k.kind == KernelKind::spmm && operands<SpmmOperands>(k).weight >= 0) {
    // If the sum also computes dot products, each element takes a further multiplication and
    // addition.
    k.flops += (k.second >= 0 ? 3 : 1) * edges * static_cast<double>(root.type.row_size());
  } else if (k.kind == KernelKind::typed_reduce) {
    // Rows of equal (row, type) are summed before the product, so there is one product per pair.
    const Node& w = plan.dfg[operands<TypedReduceOperands>(k).weight];
    const auto pairs = static_cast<double>(an.rows(plan.dfg[root.inputs[0]].type.space));
    k.flops += 2 * pairs * static_cast<double>(w.type.dims[0] * w.type.dims[1]);
  } else if (!k.program.empty()) {
    for (size_t c = 0; c < k.program.code.size(); ++c) {
      const Micro& m = k.program.code[c];
      if (m.a < 0 || m.op == MicroOp::store) continue;
      const bool product = m.op == MicroOp::gemm || m.op == MicroOp::gemm_t || m.op == MicroOp::typed_gemm ||
                           m.op == MicroOp::typed_gemm_t;
      const double per_element = product ? 2 * static_cast<double>(k.program.widths[m.out]) : 1;
      k.flops += edges * per_element * static_cast<double>(k.program.widths[m.a]);
    }
  }
}

}  // namespace nacre

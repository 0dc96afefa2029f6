#include "nacre/plan/swap.h"

#include <algorithm>

#include "nacre/plan/copy_dfg.h"
#include "nacre/plan/rewrite.h"

namespace nacre {
namespace {

// Returns whether row r of the result depends on row r of the operands alone, and on nothing
// random.
bool works_by_row(const Node& node) {
  if (op_info(node.op).elementwise) return node.op != Op::dropout;
  switch (node.op) {
    case Op::matmul:
    case Op::matmul_t:
    case Op::row_sum:
    case Op::reshape:
    case Op::concat:
    case Op::slice:
    case Op::pad:
    case Op::row_normalize:
    case Op::row_normalize_grad:
    case Op::log_softmax:
    case Op::log_softmax_grad:
      return true;
    default:
      return false;
  }
}

bool is_linear(Op op) {
  return op == Op::matmul || op == Op::matmul_t || op == Op::scale || op == Op::reshape || op == Op::slice ||
         op == Op::pad || op == Op::row_sum;
}

// Returns whether the node is index(x, src) or index(x, dst) onto edges.
bool is_gather(const Node& node) {
  return node.op == Op::index && (node.attr == Attr::src || node.attr == Attr::dst) && node.ints.empty();
}
bool is_scatter(const Node& node, const Dfg& dfg) {
  return node.op == Op::index_add && (node.attr == Attr::src || node.attr == Attr::dst) &&
         dfg[node.inputs[0]].type.space.kind == SpaceKind::edge;
}

class Swapper {
 public:
  explicit Swapper(const Blocks& blocks) : blocks_(blocks) {}

  // Turns op(index(x)) into index(op(x)), in topological order, so that whole chains move.
  Dfg gathers(const Dfg& dfg) const {
    return copy_dfg(dfg, [&](Dfg& out, NodeRef, Node node, const NodeVector<NodeRef>&) {
      NodeRef gather = -1;
      if (!works_by_row(node) || !one_gather(out, node, &gather) || !fewer_rows(out, gather)) {
        return out.add(std::move(node));
      }
      const Attr attr = out[gather].attr;
      for (NodeRef& in : node.inputs) {
        if (is_gather(out[in])) in = out[in].inputs[0];
      }
      if (node.op == Op::reshape) node.type.space = out[node.inputs[0]].type.space;
      const NodeRef at_vertices = out.add(std::move(node));
      return out.add({.op = Op::index, .inputs = {at_vertices}, .attr = attr});
    });
  }

  // Turns index_add(op(g)) into op(index_add(g)), and weight_grad(index(x), g) into weight_grad(x,
  // index_add(g)), and mirrored.
  Dfg scatters(const Dfg& dfg) const {
    const NodeVector<int> consumers = count_consumers(dfg);
    return copy_dfg(dfg, [&](Dfg& out, NodeRef i, Node node, const NodeVector<NodeRef>&) {
      if (is_scatter(node, out)) {
        Node inner = out[node.inputs[0]];
        const bool alone = consumers[dfg[i].inputs[0]] == 1;
        const bool fits = is_linear(inner.op) && alone &&
                          blocks_.total_rows(infer_type(out, node).space) <= rows(out, inner.inputs[0]);
        if (fits) {
          inner.inputs[0] = out.add({.op = Op::index_add, .inputs = {inner.inputs[0]}, .attr = node.attr});
          if (inner.op == Op::reshape) inner.type.space = out[inner.inputs[0]].type.space;
          return out.add(std::move(inner));
        }
      }
      if (node.op == Op::weight_grad) {
        for (const size_t side : {0, 1}) {
          const Node gather = out[node.inputs[side]];
          if (!is_gather(gather) || !fewer_rows(out, node.inputs[side])) continue;
          const NodeRef other = node.inputs[1 - side];
          node.inputs[1 - side] = out.add({.op = Op::index_add, .inputs = {other}, .attr = gather.attr});
          node.inputs[side] = gather.inputs[0];
          break;
        }
      }
      return out.add(std::move(node));
    });
  }

  // If a value of edges is also summed by vertex, its sum over all edges adds up the sums by
  // vertex.
  static Dfg column_sums(const Dfg& dfg) {
    return copy_dfg(dfg, [&](Dfg& out, NodeRef i, Node node, const NodeVector<NodeRef>&) {
      if (node.op == Op::column_sum && out[node.inputs[0]].type.space.kind == SpaceKind::edge) {
        for (const Node& other : dfg.nodes()) {
          if (!is_scatter(other, dfg) || other.inputs[0] != dfg[i].inputs[0]) continue;
          node.inputs[0] = out.add({.op = Op::index_add, .inputs = {node.inputs[0]}, .attr = other.attr});
          break;
        }
      }
      return out.add(std::move(node));
    });
  }

  // If the gates of an LSTM are gathered from the sources, the LSTM and its gradients read them at
  // the sources, without the gather.
  static Dfg sequences(const Dfg& dfg) {
    return copy_dfg(dfg, [](Dfg& out, NodeRef, Node node, const NodeVector<NodeRef>&) {
      const auto at_sources = [&](const Node& n, size_t z) {
        const Node& gates = out[n.inputs[z]];
        return is_gather(gates) && gates.attr == Attr::src;
      };
      if (node.op == Op::lstm && at_sources(node, 0)) {
        node.inputs[0] = out[node.inputs[0]].inputs[0];
      } else if (node.op == Op::lstm_grad_w && at_sources(node, 1)) {
        node.inputs[1] = out[node.inputs[1]].inputs[0];
      } else if (is_scatter(node, out) && node.attr == Attr::src) {
        Node inner = out[node.inputs[0]];
        if (inner.op == Op::lstm_grad_z && at_sources(inner, 1)) {
          inner.inputs[1] = out[inner.inputs[1]].inputs[0];
          node = std::move(inner);
        }
      }
      return out.add(std::move(node));
    });
  }

 private:
  int64_t rows(const Dfg& dfg, NodeRef i) const { return blocks_.total_rows(dfg[i].type.space); }

  // Returns whether every operand with rows is gathered along the same end of the edges.
  static bool one_gather(const Dfg& dfg, const Node& node, NodeRef* gather) {
    for (const NodeRef in : node.inputs) {
      if (dfg[in].type.space == Space::param()) continue;
      if (!is_gather(dfg[in]) || (*gather >= 0 && dfg[*gather].attr != dfg[in].attr)) return false;
      *gather = in;
    }
    return *gather >= 0;
  }

  bool fewer_rows(const Dfg& dfg, NodeRef gather) const {
    return rows(dfg, dfg[gather].inputs[0]) <= rows(dfg, gather);
  }

  const Blocks& blocks_;
};

}  // namespace

Dfg swap_indexing(const Dfg& dfg, const Blocks& blocks) {
  const Swapper swapper(blocks);
  const Dfg swapped = swapper.scatters(swapper.gathers(dfg));
  return merge_equal_nodes(Swapper::sequences(merge_equal_nodes(Swapper::column_sums(swapped))));
}

}  // namespace nacre

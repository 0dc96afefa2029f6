#include "nacre/plan/rewrite.h"

#include <algorithm>
#include <utility>

#include "nacre/plan/copy_dfg.h"

namespace nacre {

Dfg merge_equal_nodes(const Dfg& dfg) {
  return copy_dfg(dfg, [](Dfg& out, NodeRef, Node node, const NodeVector<NodeRef>&) {
    node.type = infer_type(out, node);
    const auto same = std::find(out.nodes().begin(), out.nodes().end(), node);
    if (same != out.nodes().end()) return static_cast<NodeRef>(same - out.nodes().begin());
    return out.add(std::move(node));
  });
}

Dfg fold_dropout_into_relu_grad(const Dfg& dfg) {
  return copy_dfg(dfg, [](Dfg& out, NodeRef, Node node, const NodeVector<NodeRef>&) {
    if (node.op != Op::relu_grad) return out.add(std::move(node));
    const Node g = out[node.inputs[0]];
    const NodeRef y = node.inputs[1];
    if (g.op != Op::dropout || g.alpha == 0) return out.add(std::move(node));
    // The loop looks for the forward dropout with the same salt on the same activation.
    for (int i = y + 1; i < out.size(); ++i) {
      const Node& h = out[i];
      if (h.op == Op::dropout && h.inputs[0] == y && h.salt == g.salt && h.alpha == g.alpha) {
        const double kept = 1 / (1 - g.alpha);
        const NodeRef masked = out.add({.op = Op::relu_grad, .inputs = {g.inputs[0], i}});
        return out.add({.op = Op::scale, .inputs = {masked}, .alpha = kept});
      }
    }
    return out.add(std::move(node));
  });
}

Dfg fold_expand(const Dfg& dfg) {
  return copy_dfg(dfg, [](Dfg& out, NodeRef, Node node, const NodeVector<NodeRef>&) {
    if (node.op != Op::mul && node.op != Op::add && node.op != Op::sub) return out.add(std::move(node));
    const ValueType type = infer_type(out, node);
    for (size_t i = 0; i < 2; ++i) {
      const Node& other = out[node.inputs[1 - i]];
      if (out[node.inputs[i]].op != Op::expand || other.op == Op::expand || other.type.dims != type.dims) continue;
      const NodeRef expanded = std::exchange(node.inputs[i], out[node.inputs[i]].inputs[0]);
      if (infer_type(out, node) == type) break;
      node.inputs[i] = expanded;
    }
    return out.add(std::move(node));
  });
}

}  // namespace nacre

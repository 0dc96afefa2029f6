// This file implements reverse-mode differentiation. It visits the nodes in reverse order and
// appends the gradients of the inputs of each node as ordinary nodes, so the backward pass is a DFG
// like the forward pass and gets the same optimisations.
#include <algorithm>
#include <map>

#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"
#include "nacre/dfg/node_vector.h"

namespace nacre {
namespace {

class Differentiator {
 public:
  explicit Differentiator(Dfg& dfg) : dfg_(dfg), size_(dfg.size()) {}

  void run(NodeRef loss) {
    NACRE_CHECK((dfg_[loss].type == ValueType{Space::param(), {}}), "the loss must be a scalar");
    mark_dependents();
    if (!wants(loss)) return;
    give(loss, dfg_.add({.op = Op::constant, .type = {Space::param(), {}}, .alpha = 1}));
    for (NodeRef i = loss; i >= 0; --i) {
      const auto found = grads_.find(i);
      if (found == grads_.end()) continue;
      const Node& node = dfg_[i];
      if (node.op == Op::param && !node.state) {
        const std::string name = "grad:" + node.name;
        dfg_.set_output(name, found->second);
      } else {
        // The node is copied, because appending nodes moves the vector that holds the original.
        backward(Node(node), i, found->second);
      }
    }
  }

 private:
  // Marks the values that depend on a trainable parameter; only they need gradients.
  void mark_dependents() {
    wanted_.assign(dfg_, 0);
    for (NodeRef i = 0; i < size_; ++i) {
      const Node& node = dfg_[i];
      bool wanted = node.op == Op::param && !node.state;
      for (const NodeRef in : node.inputs) wanted |= wanted_[in] != 0;
      wanted_[i] = wanted && node.type.dtype == DType::f32;
    }
  }

  bool wants(NodeRef i) const { return wanted_[i] != 0; }

  void give(NodeRef to, NodeRef gradient) {
    NACRE_CHECK(dfg_[to].type == dfg_[gradient].type,
                "gradient of " + type_text(dfg_[to].type) + " has type " + type_text(dfg_[gradient].type));
    const auto [known, fresh] = grads_.try_emplace(to, gradient);
    if (!fresh) known->second = add(Op::add, {known->second, gradient});
  }

  NodeRef add(Op op, std::vector<NodeRef> inputs) { return dfg_.add({.op = op, .inputs = std::move(inputs)}); }
  NodeRef add(Op op, std::vector<NodeRef> inputs, Attr attr) {
    return dfg_.add({.op = op, .inputs = std::move(inputs), .attr = attr});
  }
  NodeRef add(Op op, std::vector<NodeRef> inputs, double alpha) {
    return dfg_.add({.op = op, .inputs = std::move(inputs), .alpha = alpha});
  }
  NodeRef reshape_like(Op op, NodeRef x, const ValueType& type) {
    return dfg_.add({.op = op, .inputs = {x}, .type = type});
  }

  // Sums a gradient down to the type of an operand that was broadcast.
  NodeRef unbroadcast(NodeRef g, const ValueType& target) {
    if (dfg_[g].type.dims != target.dims) {
      g = dfg_.add({.op = Op::row_sum, .inputs = {g}, .ints = {static_cast<int64_t>(target.dims.size())}});
    }
    if (dfg_[g].type.space != target.space) g = add(Op::column_sum, {g});
    return g;
  }

  void backward(const Node& node, NodeRef self, NodeRef g) {
    switch (op_info(node.op).op_class) {
      case OpClass::leaf:
        return;
      case OpClass::indexing:
        return indexing(node, self, g);
      case OpClass::communication:
        return communication(node, g);
      case OpClass::neural:
        break;
    }
    if (op_info(node.op).elementwise) return elementwise(node, self, g);
    neural(node, self, g);
  }

  void indexing(const Node& node, NodeRef self, NodeRef g) {
    const NodeRef x = node.inputs[0];
    switch (node.op) {
      case Op::index: {
        Node back{.op = Op::index_add, .inputs = {g}, .attr = node.attr};
        if (dfg_[x].type.space.kind == SpaceKind::halo) back.ints = {1};
        return give(x, dfg_.add(back));
      }
      case Op::index_add: {
        Node back{.op = Op::index, .inputs = {g}, .attr = node.attr};
        const Space from = dfg_[x].type.space;
        if (node.attr == Attr::type) back.ints = {from.layer};
        if (from.is_pair()) back.ints.push_back(node.attr != Attr::type || from.kind == SpaceKind::pair_src ? 1 : 2);
        return give(x, dfg_.add(back));
      }
      case Op::index_mean: {
        const NodeRef degree = dfg_.add({.op = Op::degree, .type = {node.type.space, {}}, .attr = Attr::dst});
        const NodeRef scaled = add(Op::mul, {g, add(Op::inv, {degree})});
        return give(x, add(Op::index, {scaled}, Attr::dst));
      }
      case Op::index_max: {
        const NodeRef argmax = add(Op::index_argmax, {x}, Attr::dst);
        return give(x, add(Op::index_take_max, {g, argmax}, Attr::dst));
      }
      case Op::edge_softmax:
        return give(x, add(Op::edge_softmax_grad, {g, self}, Attr::dst));
      case Op::lstm:
        if (wants(x)) give(x, add(Op::lstm_grad_z, {g, x, node.inputs[1]}));
        if (wants(node.inputs[1])) give(node.inputs[1], add(Op::lstm_grad_w, {g, x, node.inputs[1]}));
        return;
      default:
        no_gradient(node);
    }
  }

  void communication(const Node& node, NodeRef g) {
    // A sum over ranks has no gradient here, because a rank cannot know whether g is the whole
    // gradient or a share of it. A model is differentiated first and then distributed.
    if (node.op == Op::all_reduce) no_gradient(node);
    if (node.op == Op::to_columns || node.op == Op::to_rows) return columns(node, g);
    give(node.inputs[0], add(node.op == Op::exchange ? Op::exchange_add : Op::exchange, {g}));
  }

  // Appends to_rows as the gradient of to_columns, and to_columns as the gradient of to_rows.
  void columns(const Node& node, NodeRef g) {
    const ValueType type = dfg_[node.inputs[0]].type;
    std::vector<int64_t> back = {type.space.layer, node.ints[1], node.ints[2]};
    if (node.op == Op::to_columns) back.push_back(type.dims[0]);
    const Op op = node.op == Op::to_columns ? Op::to_rows : Op::to_columns;
    give(node.inputs[0], dfg_.add({.op = op, .inputs = {g}, .ints = std::move(back)}));
  }

  void binary(const Node& node, NodeRef g) {
    const NodeRef a = node.inputs[0];
    const NodeRef b = node.inputs[1];
    const ValueType a_type = dfg_[a].type;
    const ValueType b_type = dfg_[b].type;
    const bool product = node.op == Op::mul;
    if (wants(a)) give(a, unbroadcast(product ? add(Op::mul, {g, b}) : g, a_type));
    if (!wants(b)) return;
    const NodeRef gb = product ? add(Op::mul, {g, a}) : g;
    const NodeRef sum = unbroadcast(gb, b_type);
    give(b, node.op == Op::sub ? add(Op::scale, {sum}, -1.0) : sum);
  }

  void elementwise(const Node& node, NodeRef self, NodeRef g) {
    const NodeRef x = node.inputs[0];
    switch (node.op) {
      case Op::add:
      case Op::sub:
      case Op::mul:
        return binary(node, g);
      case Op::scale:
        return give(x, add(Op::scale, {g}, node.alpha));
      case Op::inv:  // −g·y²
        return give(x, add(Op::scale, {add(Op::mul, {g, add(Op::mul, {self, self})})}, -1.0));
      case Op::inv_sqrt:  // −½·g·y³
        return give(x, add(Op::scale, {add(Op::mul, {g, add(Op::mul, {self, add(Op::mul, {self, self})})})}, -0.5));
      case Op::dropout:
        return give(x, dfg_.add({.op = Op::dropout, .inputs = {g}, .alpha = node.alpha, .salt = node.salt}));
      default:
        return activation(node, self, g);
    }
  }

  void activation(const Node& node, NodeRef self, NodeRef g) {
    const ActivationInfo* row = find_activation(node.op);
    if (row == nullptr || row->op != node.op) return no_gradient(node);
    const NodeRef x = node.inputs[0];
    give(x, add(row->gradient, {g, row->reads_output ? self : x}, row->has_alpha() ? node.alpha : 0));
  }

  // Differentiates y = x·w and its relatives: for_x computes dx from (g, w), for_w computes dw.
  void matrix(const Node& node, NodeRef g, Op for_x, Op for_w) {
    const NodeRef x = node.inputs[0];
    const NodeRef w = node.inputs[1];
    if (wants(x)) give(x, add(for_x, {g, w}));
    if (wants(w))
      give(w, node.op == Op::matmul || node.op == Op::typed_matmul ? add(for_w, {x, g}) : add(for_w, {g, x}));
  }

  void neural(const Node& node, NodeRef self, NodeRef g) {
    const NodeRef x = node.inputs[0];
    const ValueType x_type = dfg_[x].type;
    switch (node.op) {
      case Op::matmul:
        return matrix(node, g, Op::matmul_t, Op::weight_grad);
      case Op::matmul_t:
        return matrix(node, g, Op::matmul, Op::weight_grad);
      case Op::typed_matmul:
        return matrix(node, g, Op::typed_matmul_t, Op::typed_weight_grad);
      case Op::typed_matmul_t:
        return matrix(node, g, Op::typed_matmul, Op::typed_weight_grad);
      case Op::weight_grad:
      case Op::typed_weight_grad: {
        const bool typed = node.op == Op::typed_weight_grad;
        const NodeRef other = node.inputs[1];
        if (wants(x)) give(x, add(typed ? Op::typed_matmul_t : Op::matmul_t, {other, g}));
        if (wants(other)) give(other, add(typed ? Op::typed_matmul : Op::matmul, {x, g}));
        return;
      }
      case Op::row_sum:
      case Op::column_sum:
        return give(x, reshape_like(Op::expand, g, x_type));
      case Op::expand:
        return give(x, unbroadcast(g, x_type));
      case Op::reshape:
        return give(x, reshape_like(Op::reshape, g, x_type));
      case Op::concat: {
        const NodeRef b = node.inputs[1];
        const int64_t a_size = x_type.dims.back();
        const int64_t b_size = dfg_[b].type.dims.back();
        if (wants(x)) give(x, dfg_.add({.op = Op::slice, .inputs = {g}, .ints = {0, a_size}}));
        if (wants(b)) give(b, dfg_.add({.op = Op::slice, .inputs = {g}, .ints = {a_size, b_size}}));
        return;
      }
      case Op::slice:
        return give(x, dfg_.add({.op = Op::pad, .inputs = {g}, .ints = {node.ints[0], x_type.dims.back()}}));
      case Op::pad:
        return give(x, dfg_.add({.op = Op::slice, .inputs = {g}, .ints = {node.ints[0], x_type.dims.back()}}));
      case Op::join_rows: {
        int64_t begin = 0;
        for (const NodeRef in : node.inputs) {
          const Space space = dfg_[in].type.space;
          const bool sampled = space.kind == SpaceKind::kind;
          const std::vector<int64_t> which = sampled ? Dims{space.count} : Dims{begin, space.count};
          if (wants(in)) give(in, dfg_.add({.op = Op::slice_rows, .inputs = {g}, .ints = which}));
          begin += space.count;
        }
        return;
      }
      case Op::standardize: {
        const Node& moments = dfg_[node.inputs[1]];
        if (moments.op != Op::column_moments || moments.inputs[0] != x) {
          throw UserError("standardize", "has a gradient only with moments = column_moments of the same value",
                          "freeze the normalisation by leaving it out of the trained part");
        }
        return give(x, add(Op::standardize_grad, {g, x, node.inputs[1]}, node.alpha));
      }
      case Op::row_normalize:
        return give(x, add(Op::row_normalize_grad, {g, x}, node.alpha));
      case Op::log_softmax:
        return give(x, add(Op::log_softmax_grad, {g, self}));
      case Op::nll:
        refuse_trained_weight(node);
        return give(x, add(Op::nll_grad, {x, node.inputs[1], node.inputs[2], g}, node.alpha));
      case Op::bce:
        refuse_trained_weight(node);
        return give(x, add(Op::bce_grad, {x, node.inputs[1], node.inputs[2], g}, node.alpha));
      case Op::l2:
        return give(x, add(Op::mul, {x, g}));
      default:
        no_gradient(node);
    }
  }

  // The weights of a loss are data. A DFG that would train them is refused, because their gradient
  // would silently be missing.
  void refuse_trained_weight(const Node& loss) const {
    if (wants(loss.inputs[2])) {
      throw UserError(std::string(op_info(loss.op).name), "has no gradient for its weights",
                      "use weights that depend on no trainable parameter");
    }
  }

  [[noreturn]] static void no_gradient(const Node& node) {
    throw UserError(std::string(op_info(node.op).name), "has no gradient",
                    "use it only on values that depend on no trainable parameter");
  }

  Dfg& dfg_;
  NodeRef size_;  // number of nodes of the forward pass
  NodeVector<char> wanted_;
  std::map<NodeRef, NodeRef> grads_;
};

}  // namespace

void differentiate(Dfg& dfg, std::string_view loss) { Differentiator(dfg).run(dfg.output(loss)); }

}  // namespace nacre

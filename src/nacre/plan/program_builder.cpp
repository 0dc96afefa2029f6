#include "nacre/plan/program_builder.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

// Returns the micro-op for DFG operations that are one micro-op with the same operands.
MicroOp simple_micro(Op op) {
  switch (op) {
    case Op::add:
      return MicroOp::add;
    case Op::sub:
      return MicroOp::sub;
    case Op::mul:
      return MicroOp::mul;
    case Op::scale:
      return MicroOp::scale;
    case Op::inv:
      return MicroOp::inv;
    case Op::inv_sqrt:
      return MicroOp::inv_sqrt;
    case Op::dropout:
      return MicroOp::dropout;
    case Op::row_normalize:
      return MicroOp::row_normalize;
    case Op::row_normalize_grad:
      return MicroOp::row_normalize_grad;
    case Op::log_softmax:
      return MicroOp::log_softmax;
    case Op::log_softmax_grad:
      return MicroOp::log_softmax_grad;
    default:
      return activation_micro(op);
  }
}

}  // namespace

ProgramBuilder::ProgramBuilder(const Analysis& analysis, const NodeVector<NodeRef>& alias, Space domain,
                               std::function<bool(NodeRef)> inside)
    : an_(analysis), alias_(alias), inside_(std::move(inside)) {
  program_.domain = domain;
  program_.numbered = analysis.of_rank();
}

int ProgramBuilder::emit(Micro micro, int64_t width) {
  micro.out = static_cast<int>(program_.widths.size());
  program_.widths.push_back(width);
  program_.code.push_back(micro);
  return micro.out;
}

int ProgramBuilder::operand(NodeRef node) {
  const NodeRef owner = alias_[node];
  const auto found = std::find(program_.operands.begin(), program_.operands.end(), owner);
  if (found != program_.operands.end()) return static_cast<int>(found - program_.operands.begin());
  program_.operands.push_back(owner);
  return static_cast<int>(program_.operands.size()) - 1;
}

int ProgramBuilder::load(MicroOp op, NodeRef node) {
  return emit({.op = op, .operand = operand(node)}, an_.dfg()[node].type.row_size());
}

int ProgramBuilder::value(NodeRef node) {
  const auto known = registers_.find(node);
  if (known != registers_.end()) return known->second;
  const Node& n = an_.dfg()[node];
  int reg = -1;
  if (node == root_) {
    reg = emit({.op = MicroOp::root}, n.type.row_size());
  } else if (inside_(node)) {
    reg = compute(node);
  } else if (n.type.space == Space::param() && program_.domain != Space::param()) {
    reg = load(MicroOp::load_row0, node);
  } else {
    NACRE_CHECK(an_.same_rows(n.type.space, program_.domain),
                "a program over " + space_text(program_.domain) + " reads " + type_text(n.type));
    reg = load(MicroOp::load, node);
  }
  return registers_[node] = reg;
}

int ProgramBuilder::binary(const Node& node, MicroOp op) {
  const int64_t w = node.type.row_size();
  const int a = value(node.inputs[0]);
  const int b = value(node.inputs[1]);
  return emit({.op = op,
               .a = a,
               .b = b,
               .a_repeat = static_cast<int>(w / width(a)),
               .b_repeat = static_cast<int>(w / width(b)),
               .alpha = static_cast<float>(node.alpha)},
              w);
}

// Computes row_sum(a·b) of equal widths as dot products, without a·b, if nothing else reads a·b.
int ProgramBuilder::compute_row_sum(const Node& node) {
  const NodeRef x = node.inputs[0];
  const Node& product = an_.dfg()[x];
  const int64_t w = node.type.row_size();
  if (product.op == Op::mul && inside_(x) && x != root_ && an_.consumers(x).size() == 1 && !an_.is_result(x) &&
      !registers_.contains(x)) {
    const int a = value(product.inputs[0]);
    const int b = value(product.inputs[1]);
    if (width(a) == width(b)) return emit({.op = MicroOp::dot, .a = a, .b = b}, w);
  }
  return emit({.op = MicroOp::row_sum, .a = value(x)}, w);
}

int ProgramBuilder::compute(NodeRef computed) {
  const Node& node = an_.dfg()[computed];
  const int64_t w = node.type.row_size();
  switch (node.op) {
    case Op::index: {
      const NodeRef x = node.inputs[0];
      // Destinations are the first sources, so row r of the node is row r of x.
      if (node.attr == Attr::self) return x == root_ || inside_(x) ? value(x) : load(MicroOp::load, x);
      NACRE_CHECK(an_.row_local(computed), "a row program cannot load rows by pair");
      return load(node.attr == Attr::src   ? MicroOp::load_src
                  : node.attr == Attr::dst ? MicroOp::load_dst
                                           : MicroOp::load_type,
                  x);
    }
    case Op::index_add:  // only along self, where source and result are the same rows
    case Op::reshape:
      return value(node.inputs[0]);
    case Op::index_take_max: {
      const int g = load(MicroOp::load_dst, node.inputs[0]);
      return emit({.op = MicroOp::take_max, .a = g, .operand = operand(node.inputs[1])}, w);
    }
    case Op::row_sum:
      return compute_row_sum(node);
    case Op::expand: {
      const int a = value(node.inputs[0]);
      return emit({.op = MicroOp::expand, .a = a, .a_repeat = static_cast<int>(w / width(a))}, w);
    }
    case Op::concat: {
      const int a = value(node.inputs[0]);
      const int b = value(node.inputs[1]);
      return emit({.op = MicroOp::concat,
                   .a = a,
                   .b = b,
                   .a_part = static_cast<int>(an_.dfg()[node.inputs[0]].type.dims.back()),
                   .b_part = static_cast<int>(an_.dfg()[node.inputs[1]].type.dims.back())},
                  w);
    }
    case Op::slice:
    case Op::pad: {
      const int a = value(node.inputs[0]);
      return emit({.op = node.op == Op::slice ? MicroOp::slice : MicroOp::pad,
                   .a = a,
                   .a_part = static_cast<int>(an_.dfg()[node.inputs[0]].type.dims.back()),
                   .b_part = static_cast<int>(node.type.dims.back()),
                   .begin = static_cast<int>(node.ints[0])},
                  w);
    }
    case Op::matmul:
    case Op::matmul_t:
    case Op::typed_matmul:
    case Op::typed_matmul_t: {
      const int a = value(node.inputs[0]);
      const MicroOp op = node.op == Op::matmul         ? MicroOp::gemm
                         : node.op == Op::matmul_t     ? MicroOp::gemm_t
                         : node.op == Op::typed_matmul ? MicroOp::typed_gemm
                                                       : MicroOp::typed_gemm_t;
      return emit({.op = op, .a = a, .operand = operand(node.inputs[1])}, w);
    }
    case Op::standardize: {
      const int a = value(node.inputs[0]);
      return emit({.op = MicroOp::standardize,
                   .a = a,
                   .operand = operand(node.inputs[1]),
                   .alpha = static_cast<float>(node.alpha)},
                  w);
    }
    default:
      break;
  }
  if (node.inputs.size() == 2) return binary(node, simple_micro(node.op));
  const int a = value(node.inputs[0]);
  return emit({.op = simple_micro(node.op), .a = a, .alpha = static_cast<float>(node.alpha), .salt = node.salt}, w);
}

void ProgramBuilder::store(NodeRef node) {
  const int reg = value(node);
  program_.code.push_back({.op = MicroOp::store, .a = reg, .operand = operand(node)});
}

}  // namespace nacre

// Builds tails of kernels, one micro-op after the other.
#pragma once

#include "nacre/kernel/program.h"

namespace nacre::test {

class Tail {
 public:
  explicit Tail(int64_t width) : width_(width) { program_.domain = Space::vertex(1); }
  int root() { return add({.op = MicroOp::root}); }
  int load(NodeRef from) { return add({.op = MicroOp::load, .operand = operand(from)}); }
  int parameter(NodeRef from) { return add({.op = MicroOp::load_row0, .operand = operand(from)}); }
  int apply(MicroOp op, int a, int b = -1) { return add({.op = op, .a = a, .b = b}); }
  // Adds the product of the rows of x with a matrix or, for gemm_t, with its transpose. Returns the
  // register of the result.
  int product(MicroOp op, NodeRef x, NodeRef matrix) {
    const int rows = load(x);
    return add({.op = op, .a = rows, .operand = operand(matrix)});
  }
  void store(int value, NodeRef to) {
    program_.code.push_back({.op = MicroOp::store, .a = value, .operand = operand(to)});
  }
  const RowProgram& program() const { return program_; }

 private:
  int operand(NodeRef node) {
    program_.operands.push_back(node);
    return static_cast<int>(program_.operands.size()) - 1;
  }
  int add(Micro m) {
    m.out = static_cast<int>(program_.widths.size());
    program_.widths.push_back(width_);
    program_.code.push_back(m);
    return m.out;
  }

  int64_t width_;  // width of all rows
  RowProgram program_;
};

}  // namespace nacre::test

// One tiny DFG per operation (and per way of broadcasting, indexing, …) that ends in a scalar loss, so that the same
// list proves gradients, kernels and plans.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre::test {

// A DFG under construction. Parameters may live in any space, so every operand of an operation can be a trained leaf.
class Net {
 public:
  Dfg dfg;

  // Not trained: parameters become inputs, and everything is constant.
  explicit Net(bool trained = true) : trained_(trained) {}

  NodeRef param(ValueType type) { return leaf(trained_ ? Op::param : Op::input, std::move(type)); }
  NodeRef input(ValueType type) { return leaf(Op::input, std::move(type)); }
  NodeRef op(Op which, std::vector<NodeRef> inputs, Attr attr = Attr::none) {
    return dfg.add({.op = which, .inputs = std::move(inputs), .attr = attr});
  }
  NodeRef op(Op which, std::vector<NodeRef> inputs, double alpha) {
    return dfg.add({.op = which, .inputs = std::move(inputs), .alpha = alpha});
  }
  NodeRef to(Op which, NodeRef x, ValueType type) {
    return dfg.add({.op = which, .inputs = {x}, .type = std::move(type)});
  }
  NodeRef ints(Op which, NodeRef x, std::vector<int64_t> values) {
    return dfg.add({.op = which, .inputs = {x}, .ints = std::move(values)});
  }
  NodeRef linear(NodeRef x, int64_t out);

  // Makes a loss of y: itself, or its elements weighted at random and summed.
  void finish(NodeRef y);

 private:
  NodeRef leaf(Op which, ValueType type);

  bool trained_;
  int leaves_ = 0;
};

using Build = std::function<NodeRef(Net&)>;

inline ValueType v(int layer, Dims dims = {}) { return {Space::vertex(layer), std::move(dims)}; }
inline ValueType e(int layer, Dims dims = {}) { return {Space::edge(layer), std::move(dims)}; }
// Pairs of sources and of destinations with edge types.
inline ValueType s(int layer, Dims dims = {}) { return {Space::pair_src(layer), std::move(dims)}; }
inline ValueType d(int layer, Dims dims = {}) { return {Space::pair_dst(layer), std::move(dims)}; }
inline ValueType t(Dims dims = {}) { return {Space::type(), std::move(dims)}; }
inline ValueType p(Dims dims = {}) { return {Space::param(), std::move(dims)}; }
// A space of so many rows.
inline ValueType r(int64_t count, Dims dims = {}) { return {Space::rows(count), std::move(dims)}; }
inline ValueType as(DType dtype, ValueType type) {
  type.dtype = dtype;
  return type;
}

struct OpCase {
  std::vector<Op> ops;  // the operations this is about
  std::string name;
  Build build;
};

struct OpSizes {
  int64_t wide = 3;   // features
  int64_t other = 2;  // another number of features
  int64_t heads = 2;  // values of [heads, depth]
  int64_t depth = 3;
  int64_t hidden = 2;  // LSTM
};

// Every operation that has a gradient.
std::vector<OpCase> op_cases(const OpSizes& sizes = {});
// Two layers of models as people write them: GCN, GAT, RGCN, SAGE. They span two blocks.
std::vector<OpCase> layer_cases();

// The case's DFG with its loss; differentiated if asked.
Dfg case_dfg(const Build& build, bool differentiated);

}  // namespace nacre::test

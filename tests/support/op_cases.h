// Makes tiny DFGs that end in a scalar loss, one for each operation and each way of broadcasting,
// indexing and so on. The tests of gradients, kernels and plans all use these DFGs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/kernel/blocks.h"

namespace nacre::test {

// A Net is a DFG under construction. Parameters may have any space, so every operand of an
// operation can be a trained leaf.
class Net {
 public:
  Dfg dfg;

  // If `trained` is false, parameters become inputs, so that everything is constant.
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

  // Makes the loss from y. It is y itself if y is a scalar, otherwise a sum of y's elements with
  // random weights.
  void finish(NodeRef y);

 private:
  NodeRef leaf(Op which, ValueType type);

  bool trained_;
  int leaves_ = 0;
};

using Build = std::function<NodeRef(Net&)>;

inline ValueType v(int layer, Dims dims = {}) { return {Space::vertex(layer), std::move(dims)}; }
inline ValueType e(int layer, Dims dims = {}) { return {Space::edge(layer), std::move(dims)}; }
// These functions return types of values on the pairs of a source, or of a destination, and an edge
// type.
inline ValueType s(int layer, Dims dims = {}) { return {Space::pair_src(layer), std::move(dims)}; }
inline ValueType d(int layer, Dims dims = {}) { return {Space::pair_dst(layer), std::move(dims)}; }
inline ValueType t(Dims dims = {}) { return {Space::type(), std::move(dims)}; }
inline ValueType p(Dims dims = {}) { return {Space::param(), std::move(dims)}; }
// Returns the type of a value on the vertices of one kind.
inline ValueType k(int64_t kind, Dims dims = {}) { return {Space::of_kind(kind), std::move(dims)}; }
// Returns the type of a value with `count` rows.
inline ValueType r(int64_t count, Dims dims = {}) { return {Space::rows(count), std::move(dims)}; }
inline ValueType as(DType dtype, ValueType type) {
  type.dtype = dtype;
  return type;
}

struct OpCase {
  std::vector<Op> ops;  // the operations that this case tests
  std::string name;
  Build build;
};

struct OpSizes {
  int64_t features = 3;  // number of features
  int64_t other = 2;     // another number of features
  int64_t heads = 2;     // number of heads of values with the shape [heads, depth]
  int64_t depth = 3;
  int64_t hidden = 2;  // width of the LSTM
};

// Returns cases for every operation that has a gradient.
std::vector<OpCase> op_cases(const OpSizes& sizes = {});
// Returns a case of three kinds of vertices, whose rows become the rows of v0: projected features
// of two widths, and learned rows.
OpCase kinds_case(const OpSizes& sizes = {});
// Returns blocks whose first vertices are of three kinds in turn; with `without_second`, none of
// them is of the second kind.
Blocks blocks_of_kinds(std::vector<Graph> layers, bool without_second);
// Returns GCN, GAT, RGCN and SAGE models of two layers, which span two blocks.
std::vector<OpCase> layer_cases();

// Returns the DFG of a case with its loss and, if `differentiated` is set, its gradient.
Dfg case_dfg(const Build& build, bool differentiated);

}  // namespace nacre::test

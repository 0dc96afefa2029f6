// Tests of the structure of gradients and of pruning. tests/kernel compares their values with
// central differences.
#include <gtest/gtest.h>

#include "model/cases.h"
#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"
#include "support/op_cases.h"
#include "support/random_dfg.h"

namespace nacre::test {
namespace {

int count_ops(const Dfg& dfg, Op op) {
  int n = 0;
  for (const Node& node : dfg.nodes()) n += node.op == op ? 1 : 0;
  return n;
}

std::vector<Dfg> forward_dfgs() {
  std::vector<Dfg> all;
  const Blocks blocks = Blocks::full(random_graphs(1)[3].graph, 3);
  for (const ModelCase& c : model_cases()) all.push_back(build_model(options_for(c.options, blocks)));
  for (const OpCase& c : op_cases()) all.push_back(case_dfg(c.build, false));
  for (uint64_t seed = 0; seed < 30; ++seed) all.push_back(random_dfg(seed, 30));
  return all;
}

TEST(Differentiate, GivesEveryTrainedParameterOneGradientOfItsType) {
  for (const Dfg& forward : forward_dfgs()) {
    Dfg dfg = forward;
    differentiate(dfg);
    dfg.validate();
    // The forward pass is unchanged at the front.
    for (NodeRef i = 0; i < forward.size(); ++i) ASSERT_EQ(dfg[i], forward[i]) << forward.name();
    for (const auto& [name, node] : dfg.outputs()) {
      if (!name.starts_with("grad:")) continue;
      const NodeRef leaf = dfg.find_leaf(name.substr(5));
      ASSERT_GE(leaf, 0) << name;
      EXPECT_TRUE(dfg[leaf].op == Op::param && !dfg[leaf].state) << name;
      EXPECT_EQ(dfg[leaf].type, dfg[node].type) << name;
    }
    EXPECT_EQ(dfg.updates(), forward.updates());
  }
}

TEST(Differentiate, ModelsTrainEveryParameter) {
  const Blocks blocks = Blocks::full(random_graphs(1)[3].graph, 3);
  for (const ModelCase& c : model_cases()) {
    Dfg dfg = build_model(options_for(c.options, blocks));
    differentiate(dfg);
    for (const Node& node : dfg.nodes()) {
      if (node.op != Op::param) continue;
      EXPECT_EQ(dfg.find_output("grad:" + node.name) >= 0, !node.state) << c.name << ": " << node.name;
    }
  }
}

// Everything that the backward pass adds is needed for a gradient, and nothing in it is the
// gradient of a constant.
TEST(Differentiate, ComputesNothingForValuesThatAreNotTrained) {
  const Blocks blocks = Blocks::full(random_graphs(1)[3].graph, 3);
  for (const ModelCase& c : model_cases()) {
    const Dfg forward = build_model(options_for(c.options, blocks));
    Dfg dfg = forward;
    differentiate(dfg);
    EXPECT_EQ(prune(dfg).size(), prune(forward).size() + (dfg.size() - forward.size())) << c.name;
  }
}

TEST(Differentiate, WithoutParametersAddsNothing) {
  for (const OpCase& c : op_cases()) {
    Net net(false);
    net.finish(c.build(net));
    const int size = net.dfg.size();
    differentiate(net.dfg);
    EXPECT_EQ(net.dfg.size(), size) << c.name;
    EXPECT_EQ(net.dfg.outputs().size(), 1U) << c.name;
  }
}

TEST(Differentiate, AddsGradientsOfSharedValues) {
  Net net;
  const NodeRef x = net.param(v(0, {3}));
  const NodeRef y = net.op(Op::tanh, {x});
  net.finish(net.op(Op::add, {net.op(Op::sigmoid, {y}), net.op(Op::mul, {y, x})}));
  differentiate(net.dfg);
  EXPECT_EQ(count_ops(net.dfg, Op::tanh_grad), 1) << "one gradient of y, summed before it goes on";
}

// The gradient of reading pairs is the sum over the same pairs, and vice versa.
TEST(Differentiate, GoesBackThroughPairs) {
  for (const bool src : {true, false}) {
    Net net;
    const Attr end = src ? Attr::src : Attr::dst;
    const Attr pairs = src ? Attr::pair_src : Attr::pair_dst;
    const SpaceKind space = src ? SpaceKind::pair_src : SpaceKind::pair_dst;
    const NodeRef x = net.param(src ? v(0, {3}) : v(1, {3}));
    const NodeRef rows = net.dfg.add({.op = Op::index, .inputs = {x}, .attr = end, .ints = {1}});
    const NodeRef product = net.op(Op::typed_matmul, {rows, net.param(t({3, 2}))});
    const NodeRef on_edges = net.op(Op::index, {product}, pairs);
    net.finish(net.op(Op::index_add, {on_edges}, pairs));
    differentiate(net.dfg);
    net.dfg.validate();
    const Dfg& dfg = net.dfg;
    const Node& grad_x = dfg[dfg.output("grad:leaf0")];
    EXPECT_EQ(grad_x.op, Op::index_add);
    EXPECT_EQ(grad_x.attr, end);
    EXPECT_EQ(dfg[grad_x.inputs[0]].op, Op::typed_matmul_t);
    EXPECT_EQ(dfg[grad_x.inputs[0]].type.space.kind, space);
    const Node& grad_w = dfg[dfg.output("grad:leaf1")];
    EXPECT_EQ(grad_w.op, Op::typed_weight_grad);
    EXPECT_EQ(dfg[grad_w.inputs[0]].type.space.kind, space);
  }
}

TEST(Differentiate, ASequenceOfEdgesHasGradientsOnEdges) {
  Net net;
  const NodeRef z = net.param(e(0, {8}));
  net.finish(net.op(Op::lstm, {z, net.param(p({2, 8}))}, Attr::dst));
  differentiate(net.dfg);
  EXPECT_EQ(net.dfg[net.dfg.output("grad:leaf0")].type, e(0, {8}));
}

TEST(Differentiate, StopsAtStateAndInputs) {
  Net net;
  const NodeRef state = net.dfg.add({.op = Op::param, .type = v(0, {3}), .name = "state", .state = true});
  const NodeRef expensive = net.linear(net.op(Op::tanh, {state}), 4);
  net.finish(expensive);
  differentiate(net.dfg);
  EXPECT_EQ(count_ops(net.dfg, Op::tanh_grad), 0);
  EXPECT_EQ(count_ops(net.dfg, Op::matmul_t), 0);
  EXPECT_EQ(count_ops(net.dfg, Op::weight_grad), 1);
  EXPECT_EQ(net.dfg.find_output("grad:state"), -1);
}

TEST(Differentiate, NeedsAScalarLoss) {
  Net net;
  net.dfg.set_output("loss", net.param(v(0, {3})));
  EXPECT_THROW(differentiate(net.dfg), InternalError);
  Dfg empty;
  EXPECT_THROW(differentiate(empty), InternalError);
}

TEST(Prune, KeepsOutputsUpdatesAndTheirOrder) {
  for (const Dfg& forward : forward_dfgs()) {
    Dfg dfg = forward;
    differentiate(dfg);
    const Dfg small = prune(dfg);
    small.validate();
    ASSERT_EQ(small.outputs().size(), dfg.outputs().size());
    for (size_t i = 0; i < dfg.outputs().size(); ++i) {
      EXPECT_EQ(small.outputs()[i].first, dfg.outputs()[i].first);
      EXPECT_EQ(small[small.outputs()[i].second].op, dfg[dfg.outputs()[i].second].op);
    }
    ASSERT_EQ(small.updates().size(), dfg.updates().size());
    for (const auto& [name, node] : small.updates()) EXPECT_GE(small.find_leaf(name), 0);
    EXPECT_EQ(prune(small), small);
  }
}

TEST(Prune, DropsWhatNobodyNeeds) {
  Net net;
  const NodeRef x = net.param(v(0, {3}));
  const NodeRef wasted = net.op(Op::tanh, {net.param(v(0, {3}))});
  net.op(Op::add, {wasted, x});
  net.finish(net.op(Op::sigmoid, {x}));
  const Dfg small = prune(net.dfg);
  EXPECT_EQ(count_ops(small, Op::tanh), 0);
  EXPECT_EQ(small.find_leaf("leaf1"), -1) << "not even its leaf";
  EXPECT_EQ(count_ops(small, Op::sigmoid), 1);
  Dfg nothing;
  EXPECT_EQ(prune(nothing).size(), 0);
}

}  // namespace
}  // namespace nacre::test

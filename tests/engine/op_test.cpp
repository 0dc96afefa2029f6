// Runs every operation and its gradient through planner and engine, alone in a DFG. Results are
// compared with the interpreter on awkward graphs, with rows as wide as in models, and have the
// same bits on any number of threads.
#include <gtest/gtest.h>

#include "nacre/base/parallel.h"
#include "support/big_graphs.h"
#include "support/op_cases.h"
#include "support/random_graphs.h"
#include "support/run_plan.h"
#include "support/values.h"

namespace nacre::test {
namespace {

constexpr StepContext kOpStep{7, 2};

ref::Bindings bindings_for(const Dfg& dfg, const Blocks& blocks, uint64_t seed) {
  return rounded_to_float(random_bindings(dfg, blocks, seed, {.scale = 0.8, .gap = 0.02}));
}

class EngineOp : public testing::TestWithParam<OpCase> {
 protected:
  void TearDown() override { set_num_threads(2); }
};

std::vector<std::pair<std::string, Blocks>> small_blocks(uint64_t seed) {
  std::vector<std::pair<std::string, Blocks>> all;
  for (const GraphCase& c : random_graphs(seed, 11)) all.emplace_back(c.name, Blocks::full(c.graph, 2));
  for (const BlocksCase& c : random_blocks(seed, 2, 3)) all.emplace_back(c.name, Blocks(c.layers));
  return all;
}

TEST_P(EngineOp, AgreesWithTheInterpreter) {
  const Dfg dfg = case_dfg(GetParam().build, true);
  for (const auto& [name, blocks] : small_blocks(31)) {
    SCOPED_TRACE(name);
    expect_plans_agree(dfg, blocks, bindings_for(dfg, blocks, 41), kOpStep);
  }
}

// The result of the operation is an output, too, so it must be in memory whatever fusing would
// prefer.
TEST_P(EngineOp, AgreesWhenItsResultIsAnOutput) {
  Net net;
  const NodeRef y = GetParam().build(net);
  net.finish(y);
  differentiate(net.dfg);
  net.dfg.set_output("y", y);
  for (const auto& [name, blocks] : small_blocks(32)) {
    SCOPED_TRACE(name);
    expect_plans_agree(net.dfg, blocks, bindings_for(net.dfg, blocks, 42), kOpStep);
  }
}

// Nothing is trained, so the whole DFG is constant and computed before the first step.
TEST_P(EngineOp, AgreesWhenItIsConstant) {
  Net net(false);
  const NodeRef y = GetParam().build(net);
  net.finish(y);
  net.dfg.set_output("y", y);
  for (const auto& [name, blocks] : small_blocks(33)) {
    SCOPED_TRACE(name);
    expect_plans_agree(net.dfg, blocks, bindings_for(net.dfg, blocks, 43), kOpStep);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, EngineOp, testing::ValuesIn(op_cases()), [](const auto& c) { return c.param.name; });
INSTANTIATE_TEST_SUITE_P(Layers, EngineOp, testing::ValuesIn(layer_cases()),
                         [](const auto& c) { return c.param.name; });

class WideOp : public testing::TestWithParam<OpSizes> {
 protected:
  void TearDown() override { set_num_threads(2); }
};

TEST_P(WideOp, AgreesWithTheInterpreter) {
  const Graph graph = typed_weighted_graph({.vertices = 130, .edges = 700, .hub_edges = 150, .seed = 3});
  const Blocks blocks = Blocks::full(graph, 1);
  for (const OpCase& c : op_cases(GetParam())) {
    SCOPED_TRACE(c.name);
    const Dfg dfg = case_dfg(c.build, true);
    // The loss sums tens of thousands of terms of either sign.
    expect_plans_agree(dfg, blocks, bindings_for(dfg, blocks, 44), kOpStep, 1e-4);
  }
}

TEST_P(WideOp, ThreadsDoNotChangeABit) {
  const Graph graph = typed_weighted_graph({.vertices = 900, .edges = 1500, .hub_edges = 1200, .seed = 4});
  const Blocks blocks = Blocks::full(graph, 1);
  for (const OpCase& c : op_cases(GetParam())) {
    const Dfg dfg = case_dfg(c.build, true);
    const ref::Bindings bindings = bindings_for(dfg, blocks, 45);
    for (const PlanOptions& options : {PlanOptions{true, true}, PlanOptions{false, false}}) {
      set_num_threads(1);
      const Outputs first = run_plan(dfg, blocks, bindings, kOpStep, options);
      set_num_threads(4);
      for (const auto& [name, values] : run_plan(dfg, blocks, bindings, kOpStep, options)) {
        ASSERT_TRUE(same_bits(values, first.at(name))) << c.name << ": " << name << (options.fuse ? " fused" : "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WideOp,
                         testing::Values(OpSizes{64, 100, 4, 16, 8}, OpSizes{100, 33, 1, 256, 5},
                                         OpSizes{17, 64, 8, 8, 16}),
                         [](const auto& c) { return "wide" + std::to_string(c.param.features); });

TEST(KindsOfVertices, AgreeWithTheInterpreter) {
  for (const OpSizes& sizes : {OpSizes{}, OpSizes{.features = 64, .other = 20}}) {
    const Dfg dfg = case_dfg(kinds_case(sizes).build, true);
    for (const BlocksCase& c : random_blocks(35, 2, 3)) {
      for (const bool without_second : {false, true}) {
        SCOPED_TRACE(c.name + (without_second ? " without the second kind" : ""));
        const Blocks blocks = blocks_of_kinds(c.layers, without_second);
        expect_plans_agree(dfg, blocks, bindings_for(dfg, blocks, 47), kOpStep);
      }
    }
  }
}

// ---- Compositions that single operations do not reach.

// In a typed product of width 1, the factor on edges is not narrower than the product, and must be
// in memory all the same.
TEST(EngineComposition, TypedProductOfWidthOne) {
  Net net;
  const NodeRef x = net.op(Op::index, {net.param(v(0, {3}))}, Attr::src);
  const NodeRef norm = net.op(Op::inv, {net.dfg.add({.op = Op::typed_degree, .type = e(0)})});
  const NodeRef learned = net.op(Op::sigmoid, {net.param(e(0))});
  for (const NodeRef factor : {norm, learned}) {
    const NodeRef message = net.op(Op::mul, {net.op(Op::typed_matmul, {x, net.param(t({3, 1}))}), factor});
    net.finish(net.op(Op::index_add, {message}, Attr::dst));
    net.dfg.set_output("sum" + std::to_string(factor), net.dfg.output("loss"));
  }
  differentiate(net.dfg);
  for (const auto& [name, blocks] : small_blocks(34)) {
    SCOPED_TRACE(name);
    expect_plans_agree(net.dfg, blocks, bindings_for(net.dfg, blocks, 46), kOpStep);
  }
}

// The expressions are longer than any one program may be.
TEST(EngineComposition, LongChains) {
  for (const bool on_edges : {true, false}) {
    Net net;
    const NodeRef a = net.param(on_edges ? e(0, {2}) : v(0, {2}));
    NodeRef x = a;
    for (int i = 0; i < 150; ++i) {
      x = net.op(Op::add, {net.op(Op::scale, {net.op(Op::tanh, {x})}, 0.9), i % 7 == 0 ? net.param(p({2})) : a});
    }
    net.finish(on_edges ? net.op(Op::index_add, {x}, Attr::dst) : x);
    differentiate(net.dfg);
    const Blocks blocks = small_blocks(35).front().second;
    expect_plans_agree(net.dfg, blocks, bindings_for(net.dfg, blocks, 47), kOpStep, 1e-4);
  }
}

// Every node of the chain is used twice, so an expression written out as a tree would have 2^60
// nodes.
TEST(EngineComposition, SharedConstantsStayShort) {
  Net net;
  NodeRef x = net.input(v(0, {2}));
  for (int i = 0; i < 60; ++i) x = net.op(Op::tanh, {net.op(Op::add, {x, x})});
  net.finish(net.linear(x, 2));
  differentiate(net.dfg);
  const Blocks blocks = small_blocks(36).front().second;
  expect_plans_agree(net.dfg, blocks, bindings_for(net.dfg, blocks, 48), kOpStep, 1e-4);
}

// The constants differ in a digit far behind the point, or in the layer of a leaf whose name only
// looks like a suffix.
TEST(EngineComposition, AlikeConstantsAreKeptApart) {
  Net net;
  const NodeRef x = net.dfg.add({.op = Op::input, .type = v(1, {2}), .name = "x"});
  const NodeRef y = net.dfg.add({.op = Op::input, .type = v(1, {2}), .name = "x.1"});
  const NodeRef z = net.dfg.add({.op = Op::input, .type = v(1, {2}), .name = "x.0"});
  const NodeRef w = net.param(p({2, 2}));
  for (const NodeRef leaf : {x, y, z}) {
    for (const double alpha : {1e-9, 2e-9, 1.0, 1.0000000001}) {
      net.dfg.set_output("out" + std::to_string(net.dfg.size()),
                         net.op(Op::matmul, {net.op(Op::scale, {net.op(Op::scale, {leaf}, alpha)}, 1 / alpha), w}));
    }
  }
  const Blocks blocks = small_blocks(37).front().second;
  expect_plans_agree(net.dfg, blocks, bindings_for(net.dfg, blocks, 49), kOpStep);
}

// Tests the moments of a value that is made of parameters alone.
TEST(EngineComposition, StandardizedParameters) {
  Net net;
  const NodeRef x = net.param(p({3}));
  const NodeRef running =
      net.to(Op::reshape, net.op(Op::concat, {net.input(p({3})), net.op(Op::scale, {x}, 2.0)}), p({2, 3}));
  const NodeRef moments = net.op(Op::mul, {running, running});
  net.dfg.set_output("y", net.op(Op::standardize, {net.op(Op::tanh, {x}), moments}, 0.5));
  const Blocks blocks = small_blocks(38).front().second;
  expect_plans_agree(net.dfg, blocks, bindings_for(net.dfg, blocks, 50), kOpStep);
}

}  // namespace
}  // namespace nacre::test

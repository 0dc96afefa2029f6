// Compares the gradients of every operation with central differences of the loss, both in double by
// the reference interpreter, on graphs with every awkward structure and on message-flow blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "nacre/base/error.h"
#include "nacre/kernel/ref/interpreter.h"
#include "support/op_cases.h"
#include "support/random_graphs.h"
#include "support/values.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{.seed = 11, .step = 4};
constexpr double kDelta = 1e-5;
constexpr double kTolerance = 1e-6;
constexpr size_t kMaxElements = 48;  // number of elements of one parameter that are checked

// ---- The check.

struct Checked {
  int64_t elements = 0;
  double worst = 0;
};

std::vector<double> gradient_of(const ref::Interpreter& run, const Dfg& dfg, const std::string& name, size_t n) {
  const NodeRef node = dfg.find_output("grad:" + name);
  return node < 0 ? std::vector<double>(n, 0) : run.value(node);
}

// Gradients that are smaller than the rounding error of the difference quotient are compared by
// their absolute error, larger ones by their relative error.
double relative_error(double gradient, double difference, double loss) {
  const double floor = 1e-3 * std::max(1.0, std::abs(loss));
  return std::abs(gradient - difference) / std::max({std::abs(gradient), std::abs(difference), floor});
}

void check_gradient(const Build& build, const Blocks& blocks, uint64_t seed, Checked& checked) {
  Net net;
  net.finish(build(net));
  const Dfg forward = net.dfg;
  differentiate(net.dfg);
  net.dfg.validate();
  const ref::Bindings at = random_bindings(forward, blocks, seed, {.gap = 0.25});
  ref::Interpreter full(net.dfg, blocks);
  full.run(at, kStep);
  ref::Interpreter half(forward, blocks);
  const NodeRef loss = forward.output("loss");
  const double loss_here = full.scalar(loss);
  ASSERT_TRUE(std::isfinite(loss_here));
  ref::Bindings moved = at;
  const auto loss_at = [&](const std::string& name, size_t i, double delta) {
    moved[name][i] = at.at(name)[i] + delta;
    half.run(moved, kStep);
    moved[name][i] = at.at(name)[i];
    return half.scalar(loss);
  };
  for (const Node& leaf : forward.nodes()) {
    if (leaf.op != Op::param) continue;
    const size_t n = at.at(leaf.name).size();
    const std::vector<double> gradient = gradient_of(full, net.dfg, leaf.name, n);
    ASSERT_EQ(gradient.size(), n) << leaf.name;
    const size_t stride = std::max<size_t>(1, n / kMaxElements);
    for (size_t i = 0; i < n; i += stride) {
      const double difference = (loss_at(leaf.name, i, kDelta) - loss_at(leaf.name, i, -kDelta)) / (2 * kDelta);
      const double error = relative_error(gradient[i], difference, loss_here);
      EXPECT_LT(error, kTolerance) << leaf.name << " " << type_text(leaf.type) << " element " << i << ": gradient "
                                   << gradient[i] << ", central difference " << difference;
      checked.worst = std::max(checked.worst, error);
      ++checked.elements;
    }
  }
}

class Gradient : public testing::TestWithParam<OpCase> {};

TEST_P(Gradient, IsTheCentralDifference) {
  const Build& build = GetParam().build;
  Checked checked;
  for (const uint64_t seed : {1, 2, 3}) {
    for (const GraphCase& c : random_graphs(seed, 11)) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      check_gradient(build, Blocks::full(c.graph, 2), seed, checked);
    }
    for (const BlocksCase& c : random_blocks(seed, 2, 3)) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      check_gradient(build, Blocks(c.layers), seed, checked);
    }
  }
  EXPECT_GT(checked.elements, 20);
  RecordProperty("elements", std::to_string(checked.elements));
  RecordProperty("worst_relative_error", testing::PrintToString(checked.worst));
}

TEST(GradientOfKinds, IsTheCentralDifference) {
  Checked checked;
  for (const BlocksCase& c : random_blocks(4, 2, 3)) {
    for (const bool without_second : {false, true})
      check_gradient(kinds_case().build, blocks_of_kinds(c.layers, without_second), 4, checked);
  }
  EXPECT_GT(checked.elements, 20);
}

std::string case_name(const testing::TestParamInfo<OpCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(op_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Models, Gradient, testing::ValuesIn(layer_cases()), case_name);

// ---- Operations without a gradient.

struct NoGradient {
  Op op;
  std::string reason;
  // Uses the operation on a trainable value, which differentiate() must refuse. Empty for leaves
  // and integers.
  Build build;
};

std::vector<NoGradient> without_gradient() {
  std::vector<NoGradient> list = {
      {Op::input, "a leaf that is not trained", nullptr},
      {Op::param, "a leaf: gradients end here", nullptr},
      {Op::degree, "a leaf: depends on the graph alone", nullptr},
      {Op::typed_degree, "a leaf: depends on the graph alone", nullptr},
      {Op::constant, "a leaf", nullptr},
      {Op::index_argmax, "a position is an integer", nullptr},
  };
  const auto backward_only = [&](Op op, const std::vector<ValueType>& operands) {
    list.push_back({op, "appears in backward passes only", [=](Net& n) {
                      std::vector<NodeRef> inputs(operands.size());
                      std::transform(operands.begin(), operands.end(), inputs.begin(), [&](const ValueType& type) {
                        return type.dtype == DType::f32 ? n.param(type) : n.input(type);
                      });
                      return n.op(op, inputs, Attr::dst);
                    }});
  };
  list.push_back({Op::slice_rows, "appears in backward passes only", [](Net& n) {
                    return n.ints(Op::slice_rows, n.param(r(3, {2})), {1, 2});
                  }});
  list.push_back({Op::all_reduce, "a rank does not know whether it has the whole gradient of a sum over ranks",
                  [](Net& n) { return n.op(Op::all_reduce, {n.param(p({2}))}); }});
  const ValueType row = v(1, {2});
  backward_only(Op::index_take_max, {row, as(DType::i32, row)});
  backward_only(Op::edge_softmax_grad, {e(0), e(0)});
  backward_only(Op::lstm_grad_z, {v(1, {1}), v(0, {4}), p({1, 4})});
  backward_only(Op::lstm_grad_w, {v(1, {1}), v(0, {4}), p({1, 4})});
  backward_only(Op::lstm_gates, {v(0, {4}), p({1, 4})});
  backward_only(Op::lstm_gates_grad, {v(1, {1}), e(0, {4}), p({1, 4})});
  backward_only(Op::lstm_states, {e(0, {4})});
  for (const ActivationInfo& activation : activations()) backward_only(activation.gradient, {row, row});
  for (const Op op : {Op::row_normalize_grad, Op::log_softmax_grad}) backward_only(op, {row, row});
  backward_only(Op::standardize_grad, {row, row, p({2, 2})});
  backward_only(Op::nll_grad, {row, as(DType::i32, v(1)), v(1), p()});
  backward_only(Op::bce_grad, {row, as(DType::u8, row), v(1), p()});
  return list;
}

TEST(GradientTable, HasEveryOperationOnceOrSaysWhyNot) {
  std::set<Op> proved;
  for (const OpCase& c : op_cases()) proved.insert(c.ops.begin(), c.ops.end());
  std::set<Op> excused;
  for (const NoGradient& c : without_gradient()) excused.insert(c.op);
  for (int i = 0; i < static_cast<int>(Op::count_); ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_NE(proved.contains(op), excused.contains(op))
        << op_info(op).name << " needs a gradient test, or a reason in without_gradient(), and not both";
  }
}

TEST(GradientTable, DifferentiateRefusesWhatHasNoGradient) {
  for (const NoGradient& c : without_gradient()) {
    if (!c.build) continue;
    Net net;
    net.finish(c.build(net));
    EXPECT_THROW(differentiate(net.dfg), UserError) << op_info(c.op).name;
  }
}

// Some operands are meant to be data. A trainable value there must not silently lose its gradient.
TEST(Gradient, IsRefusedWhereItWouldBeLost) {
  const std::vector<std::pair<std::string, Build>> uses = {
      {"nll weight",
       [](Net& n) {
         const NodeRef label = n.input(as(DType::i32, v(0)));
         return n.op(Op::nll, {n.input(v(0, {2})), label, n.param(v(0))});
       }},
      {"bce weight",
       [](Net& n) {
         const NodeRef target = n.input(as(DType::u8, v(0, {2})));
         return n.op(Op::bce, {n.param(v(0, {2})), target, n.param(v(0))});
       }},
      {"moments of another value",
       [](Net& n) {
         const NodeRef m = n.op(Op::column_moments, {n.param(v(0, {2}))});
         return n.op(Op::standardize, {n.param(v(0, {2})), m}, 0.1);
       }},
      {"moments alone", [](Net& n) { return n.op(Op::column_moments, {n.param(v(0, {2}))}); }},
  };
  for (const auto& [name, build] : uses) {
    Net net;
    net.finish(build(net));
    EXPECT_THROW(differentiate(net.dfg), UserError) << name;
  }
}

TEST(Gradient, IsComputedOnlyForWhatIsTrained) {
  Net net;
  const NodeRef x = net.input(v(0, {3}));
  const NodeRef state = net.dfg.add({.op = Op::param, .type = p({3}), .name = "state", .state = true});
  const NodeRef y = net.linear(net.op(Op::add, {net.op(Op::tanh, {x}), state}), 2);
  net.finish(y);
  differentiate(net.dfg);
  EXPECT_EQ(net.dfg.find_output("grad:state"), -1);
  EXPECT_GE(net.dfg.find_output("grad:leaf1"), 0);
  for (const Node& node : net.dfg.nodes()) EXPECT_NE(node.op, Op::matmul_t) << "the input's gradient is computed";
}

}  // namespace
}  // namespace nacre::test

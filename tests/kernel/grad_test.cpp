// Gradients of every operation against central differences of the loss, both in double by the reference interpreter, on
// graphs with every awkward structure and on message-flow blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "nacre/base/error.h"
#include "nacre/kernel/ref/interpreter.h"
#include "support/random_graphs.h"
#include "support/values.h"

namespace nacre {
namespace {

constexpr StepContext kStep{.seed = 11, .step = 4};
constexpr double kDelta = 1e-5;
constexpr double kTolerance = 1e-6;
constexpr size_t kMaxElements = 48;  // of one parameter that are checked

// A DFG under construction. Parameters may live in any space, so every operand of an operation can be a trained leaf.
class Net {
 public:
  Dfg dfg;

  NodeRef param(ValueType type) { return leaf(Op::param, std::move(type)); }
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

  // Makes a loss of y: itself, or its elements weighted at random and summed.
  void finish(NodeRef y) {
    if (dfg[y].type != ValueType{}) {
      const NodeRef weighted = op(Op::mul, {y, input(dfg[y].type)});
      y = op(Op::column_sum, {ints(Op::row_sum, weighted, {0})});
    }
    dfg.set_output("loss", y);
  }

 private:
  NodeRef leaf(Op which, ValueType type) {
    return dfg.add({.op = which, .type = std::move(type), .name = "leaf" + std::to_string(leaves_++)});
  }
  int leaves_ = 0;
};

using Build = std::function<NodeRef(Net&)>;

ValueType v(int layer, Dims dims = {}) { return {Space::vertex(layer), std::move(dims)}; }
ValueType e(int layer, Dims dims = {}) { return {Space::edge(layer), std::move(dims)}; }
ValueType t(Dims dims = {}) { return {Space::type(), std::move(dims)}; }
ValueType p(Dims dims = {}) { return {Space::param(), std::move(dims)}; }
ValueType as(DType dtype, ValueType type) {
  type.dtype = dtype;
  return type;
}

struct GradCase {
  std::vector<Op> ops;  // whose gradient this proves
  std::string name;
  Build build;
};

void index_cases(std::vector<GradCase>& out) {
  const auto one = [&](Op op, Attr attr, const char* name, const ValueType& type) {
    out.push_back({{op}, name, [=](Net& n) { return n.op(op, {n.param(type)}, attr); }});
  };
  one(Op::index, Attr::src, "index_src", v(0, {3}));
  one(Op::index, Attr::dst, "index_dst", v(1, {2, 2}));
  one(Op::index, Attr::self, "index_self", v(0, {3}));
  out.push_back({{Op::index}, "index_type", [](Net& n) {
                   return n.dfg.add({.op = Op::index, .inputs = {n.param(t({3}))}, .attr = Attr::type, .ints = {0}});
                 }});
  one(Op::index_add, Attr::src, "index_add_src", e(0, {2}));
  one(Op::index_add, Attr::dst, "index_add_dst", e(0, {2, 2}));
  one(Op::index_add, Attr::type, "index_add_type", e(0, {2}));
  one(Op::index_add, Attr::self, "index_add_self", v(1, {3}));
  one(Op::index_mean, Attr::dst, "index_mean", e(0, {3}));
  one(Op::index_max, Attr::dst, "index_max", e(0, {3}));
  one(Op::edge_softmax, Attr::dst, "edge_softmax", e(0, {2}));
  // Duplicate edges tie here; whichever wins, the gradient reaches the same source.
  out.push_back({{Op::index_max}, "index_max_of_sources", [](Net& n) {
                   return n.op(Op::index_max, {n.op(Op::index, {n.param(v(0, {2}))}, Attr::src)}, Attr::dst);
                 }});
  out.push_back({{Op::lstm}, "lstm", [](Net& n) {
                   const NodeRef z = n.param(v(0, {8}));
                   return n.op(Op::lstm, {z, n.param(p({2, 8}))}, Attr::dst);
                 }});
  out.push_back({{Op::lstm}, "lstm_fixed_gates", [](Net& n) {
                   const NodeRef z = n.input(v(0, {4}));
                   return n.op(Op::lstm, {z, n.param(p({1, 4}))}, Attr::dst);
                 }});
}

void binary_cases(std::vector<GradCase>& out) {
  const auto two = [&](Op op, const std::string& name, const ValueType& a, const ValueType& b) {
    out.push_back({{op}, name, [=](Net& n) {
                     const NodeRef x = n.param(a);
                     return n.op(op, {x, n.param(b)});
                   }});
  };
  two(Op::matmul, "matmul", v(0, {3}), p({3, 2}));
  two(Op::matmul, "matmul_one_row", p({3}), p({3, 2}));
  two(Op::matmul_t, "matmul_t", v(0, {2}), p({3, 2}));
  two(Op::weight_grad, "weight_grad", v(0, {3}), v(0, {2}));
  two(Op::typed_matmul, "typed_matmul", e(0, {3}), t({3, 2}));
  two(Op::typed_matmul_t, "typed_matmul_t", e(0, {2}), t({3, 2}));
  two(Op::typed_weight_grad, "typed_weight_grad", e(0, {3}), e(0, {2}));
  two(Op::concat, "concat", v(0, {2, 1}), v(0, {2, 2}));
  for (const Op op : {Op::add, Op::sub, Op::mul}) {
    const std::string name(op_info(op).name);
    two(op, name, v(0, {3}), v(0, {3}));
    two(op, name + "_bias", v(0, {3}), p({3}));
    two(op, name + "_scalar_first", p(), e(0, {2}));
    two(op, name + "_prefix", e(0, {2}), e(0, {2, 3}));
    two(op, name + "_prefix_of_p", v(0, {2, 2}), p({2}));
    two(op, name + "_wider_p", v(1, {2}), p({2, 3}));
    two(op, name + "_p_only", p({2}), p());
    two(op, name + "_types", t({2}), t());
    out.push_back({{op}, name + "_with_itself", [op](Net& n) {
                     const NodeRef x = n.param(v(0, {2}));
                     return n.op(op, {x, x});
                   }});
  }
}

void unary_cases(std::vector<GradCase>& out) {
  const auto one = [&](Op op, double alpha) {
    out.push_back({{op}, std::string(op_info(op).name), [=](Net& n) { return n.op(op, {n.param(v(0, {3}))}, alpha); }});
  };
  one(Op::scale, -1.75);
  one(Op::relu, 0);
  one(Op::leaky_relu, 0.2);
  one(Op::elu, 1.5);
  one(Op::sigmoid, 0);
  one(Op::tanh, 0);
  one(Op::inv, 0);
  one(Op::inv_sqrt, 0);
  one(Op::column_sum, 0);
  one(Op::row_normalize, 0.1);
  one(Op::log_softmax, 0);
  one(Op::l2, 0);
  out.push_back({{Op::dropout}, "dropout", [](Net& n) {
                   return n.dfg.add({.op = Op::dropout, .inputs = {n.param(e(0, {3}))}, .alpha = 0.4, .salt = 3});
                 }});
  out.push_back({{Op::row_normalize}, "row_normalize_two_dims", [](Net& n) {
                   return n.op(Op::row_normalize, {n.param(v(0, {2, 2}))}, 0.1);
                 }});
  out.push_back({{Op::column_moments, Op::standardize}, "standardize", [](Net& n) {
                   const NodeRef x = n.param(v(0, {3}));
                   return n.op(Op::standardize, {x, n.op(Op::column_moments, {x})}, 0.1);
                 }});
  out.push_back({{Op::l2}, "l2_of_parameter", [](Net& n) { return n.op(Op::l2, {n.param(p({2, 3}))}); }});
}

void shape_cases(std::vector<GradCase>& out) {
  const auto with_ints = [&](Op op, const char* name, const ValueType& type, const std::vector<int64_t>& ints) {
    out.push_back({{op}, name, [=](Net& n) { return n.ints(op, n.param(type), ints); }});
  };
  const auto with_type = [&](Op op, const char* name, const ValueType& from, const ValueType& type) {
    out.push_back({{op}, name, [=](Net& n) { return n.to(op, n.param(from), type); }});
  };
  with_ints(Op::row_sum, "row_sum_all", v(0, {2, 3}), {0});
  with_ints(Op::row_sum, "row_sum_last", v(0, {2, 3}), {1});
  with_ints(Op::row_sum, "row_sum_nothing", v(0, {2}), {1});
  with_ints(Op::slice, "slice", v(0, {2, 3}), {1, 2});
  with_ints(Op::pad, "pad", v(0, {2, 2}), {1, 4});
  with_type(Op::expand, "expand_rows", p({2}), v(0, {2}));
  with_type(Op::expand, "expand_dims", v(0, {2}), v(0, {2, 3}));
  with_type(Op::expand, "expand_both", p(), e(0, {2}));
  with_type(Op::expand, "expand_parameter", p({2}), p({2, 3}));
  with_type(Op::reshape, "reshape", v(0, {2, 3}), v(0, {3, 2}));
}

NodeRef classify(Net& n, NodeRef scores) {
  const ValueType row = {n.dfg[scores].type.space, {}};
  const NodeRef label = n.input(as(DType::i32, row));
  return n.op(Op::nll, {n.op(Op::log_softmax, {scores}), label, n.input(row)});
}

void loss_cases(std::vector<GradCase>& out) {
  out.push_back({{Op::nll}, "nll", [](Net& n) {
                   const NodeRef lp = n.param(v(1, {3}));
                   const NodeRef label = n.input(as(DType::i32, v(1)));
                   return n.op(Op::nll, {lp, label, n.input(v(1))});
                 }});
  out.push_back({{Op::nll}, "nll_of_edges", [](Net& n) { return classify(n, n.param(e(0, {4}))); }});
  out.push_back({{Op::bce}, "bce", [](Net& n) {
                   const NodeRef x = n.param(v(1, {3}));
                   const NodeRef target = n.input(as(DType::u8, v(1, {3})));
                   return n.op(Op::bce, {x, target, n.input(v(1))});
                 }});
  // The incoming gradient of a loss need not be 1.
  out.push_back({{Op::nll, Op::bce, Op::l2}, "losses_weighted", [](Net& n) {
                   const NodeRef x = n.param(v(1, {3}));
                   const NodeRef target = n.input(as(DType::u8, v(1, {3})));
                   const NodeRef b = n.op(Op::bce, {x, target, n.input(v(1))});
                   const NodeRef decay = n.op(Op::scale, {n.op(Op::l2, {x})}, 0.3);
                   return n.op(Op::add, {n.op(Op::mul, {b, classify(n, x)}), decay});
                 }});
}

std::vector<GradCase> grad_cases() {
  std::vector<GradCase> cases;
  index_cases(cases);
  binary_cases(cases);
  unary_cases(cases);
  shape_cases(cases);
  loss_cases(cases);
  return cases;
}

// ---- two layers of models as people write them

NodeRef linear(Net& n, NodeRef x, int64_t out) {
  return n.op(Op::matmul, {x, n.param(p({n.dfg[x].type.row_size(), out}))});
}

// Weighted sum of neighbours, scaled by both degrees.
NodeRef gcn_layer(Net& n, NodeRef x, int layer) {
  const NodeRef out_degree = n.dfg.add({.op = Op::degree, .type = v(layer), .attr = Attr::src});
  const NodeRef in_degree = n.dfg.add({.op = Op::degree, .type = v(layer + 1), .attr = Attr::dst});
  const NodeRef h = n.op(Op::mul, {linear(n, x, 3), n.op(Op::inv_sqrt, {out_degree})});
  const NodeRef weight = n.dfg.add({.op = Op::input, .type = e(layer), .name = "edge_weight." + std::to_string(layer)});
  const NodeRef message = n.op(Op::mul, {n.op(Op::index, {h}, Attr::src), weight});
  const NodeRef sum = n.op(Op::index_add, {message}, Attr::dst);
  return n.op(Op::add, {n.op(Op::mul, {sum, n.op(Op::inv_sqrt, {in_degree})}), n.param(p({3}))});
}

// Two heads of width 2.
NodeRef gat_layer(Net& n, NodeRef x, int layer) {
  const NodeRef h = n.to(Op::reshape, linear(n, x, 4), v(layer, {2, 2}));
  const auto score = [&](NodeRef at) { return n.ints(Op::row_sum, n.op(Op::mul, {at, n.param(p({2, 2}))}), {1}); };
  const NodeRef from = n.op(Op::index, {score(h)}, Attr::src);
  const NodeRef here = n.op(Op::index, {score(n.op(Op::index, {h}, Attr::self))}, Attr::dst);
  const NodeRef raw = n.op(Op::leaky_relu, {n.op(Op::add, {from, here})}, 0.2);
  const NodeRef attention = n.op(Op::edge_softmax, {raw}, Attr::dst);
  const NodeRef message = n.op(Op::mul, {n.op(Op::index, {h}, Attr::src), attention});
  return n.to(Op::reshape, n.op(Op::index_add, {message}, Attr::dst), v(layer + 1, {4}));
}

NodeRef rgcn_layer(Net& n, NodeRef x, int layer) {
  const NodeRef w = n.param(t({n.dfg[x].type.row_size(), 3}));
  const NodeRef norm = n.op(Op::inv, {n.dfg.add({.op = Op::typed_degree, .type = e(layer)})});
  const NodeRef message = n.op(Op::mul, {n.op(Op::typed_matmul, {n.op(Op::index, {x}, Attr::src), w}), norm});
  const NodeRef self = linear(n, n.op(Op::index, {x}, Attr::self), 3);
  return n.op(Op::add, {n.op(Op::index_add, {message}, Attr::dst), self});
}

// Own row beside the mean, the maximum and the LSTM of the neighbours.
NodeRef sage_layer(Net& n, NodeRef x, int layer) {
  const NodeRef messages = n.op(Op::index, {x}, Attr::src);
  const NodeRef mean = n.op(Op::index_mean, {messages}, Attr::dst);
  const NodeRef top = n.op(Op::index_max, {messages}, Attr::dst);
  const NodeRef last = n.op(Op::lstm, {linear(n, x, 8), n.param(p({2, 8}))}, Attr::dst);
  const NodeRef self = n.op(Op::index, {x}, Attr::self);
  const NodeRef all = n.op(Op::concat, {n.op(Op::concat, {self, mean}), n.op(Op::concat, {top, last})});
  const NodeRef y = linear(n, all, 3);
  EXPECT_EQ(n.dfg[y].type.space.layer, layer + 1);
  return n.op(Op::standardize, {y, n.op(Op::column_moments, {y})}, 0.1);
}

using Layer = NodeRef (*)(Net&, NodeRef, int);

std::vector<GradCase> model_cases() {
  std::vector<GradCase> cases;
  const auto keep = [&](const char* name, Layer layer) {
    cases.push_back({{}, name, [layer](Net& n) {
                       const NodeRef hidden = n.op(Op::elu, {layer(n, n.input(v(0, {3})), 0)}, 1.0);
                       const NodeRef dropped =
                           n.dfg.add({.op = Op::dropout, .inputs = {hidden}, .alpha = 0.25, .salt = 1});
                       return classify(n, layer(n, dropped, 1));
                     }});
  };
  keep("two_layers_gcn", gcn_layer);
  keep("two_layers_gat", gat_layer);
  keep("two_layers_rgcn", rgcn_layer);
  keep("two_layers_sage", sage_layer);
  return cases;
}

// ---- the check

struct Checked {
  int64_t elements = 0;
  double worst = 0;
};

std::vector<double> gradient_of(const ref::Interpreter& run, const Dfg& dfg, const std::string& name, size_t n) {
  const NodeRef node = dfg.find_output("grad:" + name);
  return node < 0 ? std::vector<double>(n, 0) : run.value(node);
}

// Absolute errors count below the size of the loss's own rounding error in the quotient.
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
  const ref::Bindings at = test::random_bindings(forward, blocks, seed, {.gap = 0.25});
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

class Gradient : public testing::TestWithParam<GradCase> {};

TEST_P(Gradient, IsTheCentralDifference) {
  const Build& build = GetParam().build;
  Checked checked;
  for (const uint64_t seed : {1, 2, 3}) {
    for (const test::GraphCase& c : test::random_graphs(seed, 11)) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      check_gradient(build, Blocks::full(c.graph, 2), seed, checked);
    }
    for (const test::BlocksCase& c : test::random_blocks(seed, 2, 3)) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      check_gradient(build, Blocks(c.layers), seed, checked);
    }
  }
  EXPECT_GT(checked.elements, 20);
  RecordProperty("elements", std::to_string(checked.elements));
  RecordProperty("worst_relative_error", testing::PrintToString(checked.worst));
}

std::string case_name(const testing::TestParamInfo<GradCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(grad_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Models, Gradient, testing::ValuesIn(model_cases()), case_name);

// ---- operations without a gradient

struct NoGradient {
  Op op;
  std::string reason;
  Build build;  // a use on a trainable value, which differentiate() must refuse; none for leaves and integers
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
  const ValueType row = v(1, {2});
  backward_only(Op::index_take_max, {row, as(DType::i32, row)});
  backward_only(Op::edge_softmax_grad, {e(0), e(0)});
  backward_only(Op::lstm_grad_z, {v(1, {1}), v(0, {4}), p({1, 4})});
  backward_only(Op::lstm_grad_w, {v(1, {1}), v(0, {4}), p({1, 4})});
  for (const Op op : {Op::relu_grad, Op::leaky_relu_grad, Op::elu_grad, Op::sigmoid_grad, Op::tanh_grad,
                      Op::row_normalize_grad, Op::log_softmax_grad}) {
    backward_only(op, {row, row});
  }
  backward_only(Op::standardize_grad, {row, row, p({2, 2})});
  backward_only(Op::nll_grad, {row, as(DType::i32, v(1)), v(1), p()});
  backward_only(Op::bce_grad, {row, as(DType::u8, row), v(1), p()});
  return list;
}

TEST(GradientTable, HasEveryOperationOnceOrSaysWhyNot) {
  std::set<Op> proved;
  for (const GradCase& c : grad_cases()) proved.insert(c.ops.begin(), c.ops.end());
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

// Operands that are meant to be data: a trainable value there must not lose its gradient in silence.
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
  const NodeRef y = linear(net, net.op(Op::add, {net.op(Op::tanh, {x}), state}), 2);
  net.finish(y);
  differentiate(net.dfg);
  EXPECT_EQ(net.dfg.find_output("grad:state"), -1);
  EXPECT_GE(net.dfg.find_output("grad:leaf1"), 0);
  for (const Node& node : net.dfg.nodes()) EXPECT_NE(node.op, Op::matmul_t) << "the input's gradient is computed";
}

}  // namespace
}  // namespace nacre

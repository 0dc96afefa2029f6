#include "nacre/plan/rewrite.h"

#include <gtest/gtest.h>

#include "nacre/plan/order.h"
#include "plan/plans.h"
#include "support/op_cases.h"

namespace nacre::test {
namespace {

TEST(MergeEqualNodes, KeepsOneOfEach) {
  Net net;
  const NodeRef x = net.param(v(0, {3}));
  const NodeRef a = net.op(Op::tanh, {x});
  const NodeRef b = net.op(Op::tanh, {x});
  net.finish(net.op(Op::add, {net.op(Op::scale, {a}, 0.5), net.op(Op::scale, {b}, 0.5)}));
  const Dfg merged = merge_equal_nodes(net.dfg);
  EXPECT_EQ(count_ops(merged, Op::tanh), 1);
  EXPECT_EQ(count_ops(merged, Op::scale), 1);
  EXPECT_GE(merged.find_output("loss"), 0);
  merged.validate();
  EXPECT_EQ(merge_equal_nodes(merged), merged);
}

TEST(MergeEqualNodes, KeepsWhatDiffersInAnyField) {
  Net net;
  const NodeRef x = net.param(v(0, {4}));
  const auto dropped = [&](double alpha, uint64_t salt) {
    return net.dfg.add({.op = Op::dropout, .inputs = {x}, .alpha = alpha, .salt = salt});
  };
  const std::vector<NodeRef> different = {dropped(0.5, 1), dropped(0.5, 2), dropped(0.25, 1),
                                          net.ints(Op::pad, net.ints(Op::slice, x, {0, 2}), {0, 4}),
                                          net.ints(Op::pad, net.ints(Op::slice, x, {2, 2}), {0, 4})};
  for (size_t i = 0; i < different.size(); ++i) net.dfg.set_output("o" + std::to_string(i), different[i]);
  const Dfg merged = merge_equal_nodes(net.dfg);
  EXPECT_EQ(count_ops(merged, Op::dropout), 3);
  EXPECT_EQ(count_ops(merged, Op::slice), 2);
}

TEST(FoldDropout, OnlyWhereTheForwardDropoutIsTheSame) {
  const auto folded = [](double share, uint64_t salt) {
    Net net;
    const NodeRef y = net.op(Op::relu, {net.param(v(0, {3}))});
    net.dfg.set_output("h", net.dfg.add({.op = Op::dropout, .inputs = {y}, .alpha = 0.5, .salt = 7}));
    const NodeRef g = net.dfg.add({.op = Op::dropout, .inputs = {net.input(v(0, {3}))}, .alpha = share, .salt = salt});
    net.dfg.set_output("g", net.op(Op::relu_grad, {g, y}));
    return count_ops(fold_dropout_into_relu_grad(net.dfg), Op::dropout) == 1;
  };
  EXPECT_TRUE(folded(0.5, 7));
  EXPECT_FALSE(folded(0.5, 8)) << "another mask";
  EXPECT_FALSE(folded(0.25, 7)) << "another share";
}

TEST(OrderForMemory, NeverRaisesThePeak) {
  for (const ModelCase& c : model_cases()) {
    const PlannedModel m = plan_model(c.options);
    // The order of the nodes is always legal, and make_plan() starts from it.
    Plan by_node = m.plan;
    std::stable_sort(by_node.kernels.begin(), by_node.kernels.end(),
                     [](const Kernel& a, const Kernel& b) { return a.root < b.root; });
    validate(by_node, m.blocks);
    EXPECT_LE(peak_live_bytes(m.plan, m.blocks), peak_live_bytes(by_node, m.blocks)) << c.name;
    Plan again = m.plan;
    order_for_memory(again, m.blocks);
    validate(again, m.blocks);
    EXPECT_LE(peak_live_bytes(again, m.blocks), peak_live_bytes(m.plan, m.blocks)) << c.name;
  }
}

}  // namespace
}  // namespace nacre::test

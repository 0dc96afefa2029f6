// Tests indexing swapping: where work must leave the edges, where it must not, and that values do
// not change.
#include "nacre/plan/swap.h"

#include <gtest/gtest.h>

#include "plan/plans.h"
#include "support/op_cases.h"
#include "support/random_dfg.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{2, 6};

// Returns 20 vertices and 80 edges, typed and weighted.
Blocks dense_blocks() { return Blocks::full(random_graphs(3, 20)[3].graph, 2); }
// Returns 20 vertices and 10 edges.
Blocks sparse_blocks() { return Blocks::full(random_graphs(3, 20)[8].graph, 2); }

int products_on_edges(const Dfg& dfg) {
  return count_ops(dfg, Op::matmul, SpaceKind::edge) + count_ops(dfg, Op::matmul_t, SpaceKind::edge);
}

int weight_grads_of_edges(const Dfg& dfg) {
  int n = 0;
  for (const Node& node : dfg.nodes()) {
    n += node.op == Op::weight_grad && dfg[node.inputs[0]].type.space.kind == SpaceKind::edge ? 1 : 0;
  }
  return n;
}

NodeRef dropped(Net& n, NodeRef x) { return n.dfg.add({.op = Op::dropout, .inputs = {x}, .alpha = 0.5, .salt = 4}); }
NodeRef src(Net& n, NodeRef x) { return n.op(Op::index, {x}, Attr::src); }
NodeRef dst(Net& n, NodeRef x) { return n.op(Op::index, {x}, Attr::dst); }

// tanh prevents a sum from reaching through to what is under it.
NodeRef sum_of_tanh(Net& n, NodeRef edges) { return n.op(Op::index_add, {n.op(Op::tanh, {edges})}, Attr::dst); }

Dfg swapped(const Build& build, const Blocks& blocks, bool differentiated = false) {
  return swap_indexing(case_dfg(build, differentiated), blocks);
}

TEST(Swap, TheLstmProjectsAtVertices) {
  for (const int layers : {1, 2, 3}) {
    const PlannedModel written = plan_model(usual("sage-lstm", layers), {.rewrite = false});
    EXPECT_GE(products_on_edges(written.plan.dfg), layers) << "as the model writes it";
    EXPECT_GE(weight_grads_of_edges(written.plan.dfg), layers);
    const PlannedModel m = plan_model(usual("sage-lstm", layers));
    SCOPED_TRACE(print_dfg(m.plan.dfg));
    EXPECT_EQ(products_on_edges(m.plan.dfg), 0);
    EXPECT_EQ(weight_grads_of_edges(m.plan.dfg), 0);
    for (const Node& node : m.plan.dfg.nodes()) {
      if (node.op == Op::lstm || node.op == Op::lstm_grad_w) {
        const NodeRef z = node.inputs[node.op == Op::lstm ? 0 : 1];
        EXPECT_EQ(m.plan.dfg[z].type.space.kind, SpaceKind::vertex);
      }
      EXPECT_FALSE(node.op == Op::lstm_grad_z && node.type.space.kind != SpaceKind::vertex);
      EXPECT_FALSE(node.op == Op::column_sum && m.plan.dfg[node.inputs[0]].type.space.kind == SpaceKind::edge)
          << "the bias takes the vertices' sums";
    }
    EXPECT_EQ(widest_stored_edge_value(m.plan), 0);
  }
}

TEST(Swap, WholeChainsMove) {
  const Dfg dfg = swapped(
      [](Net& n) {
        const NodeRef h = n.op(Op::add, {n.linear(src(n, n.param(v(0, {4}))), 6), n.param(p({6}))});
        const NodeRef two = n.to(Op::reshape, n.op(Op::relu, {h}), e(0, {2, 3}));
        return sum_of_tanh(n, n.ints(Op::row_sum, two, {1}));
      },
      dense_blocks());
  SCOPED_TRACE(print_dfg(dfg));
  for (const Op op : {Op::matmul, Op::add, Op::relu, Op::reshape, Op::row_sum, Op::tanh}) {
    EXPECT_EQ(count_ops(dfg, op, SpaceKind::edge), 0) << op_info(op).name;
  }
  EXPECT_EQ(count_ops(dfg, Op::index), 1) << "one gather at the end";
  dfg.validate();
}

TEST(Swap, OperandsOfTheSameEndMoveTogether) {
  const Dfg dfg = swapped(
      [](Net& n) {
        const NodeRef a = dst(n, n.param(v(1, {3})));
        const NodeRef b = dst(n, n.param(v(1, {3})));
        return sum_of_tanh(n, n.op(Op::mul, {a, n.op(Op::sigmoid, {b})}));
      },
      dense_blocks());
  EXPECT_EQ(count_ops(dfg, Op::mul, SpaceKind::edge), 0) << print_dfg(dfg);
}

// ---- Where work must not leave the edges.

TEST(Swap, StopsAtDropout) {
  const Dfg dfg = swapped([](Net& n) { return sum_of_tanh(n, n.linear(dropped(n, src(n, n.param(v(0, {4})))), 3)); },
                          dense_blocks());
  SCOPED_TRACE(print_dfg(dfg));
  EXPECT_EQ(count_ops(dfg, Op::dropout, SpaceKind::edge), 1) << "every edge draws its own numbers";
  EXPECT_EQ(count_ops(dfg, Op::matmul, SpaceKind::edge), 1);
}

TEST(Swap, LeavesProductsOfBothEndsAlone) {
  for (const Op mix : {Op::concat, Op::add, Op::mul}) {
    const Dfg dfg = swapped(
        [mix](Net& n) {
          const NodeRef both = n.op(mix, {src(n, n.param(v(0, {4}))), dst(n, n.param(v(1, {4})))});
          return sum_of_tanh(n, n.linear(both, 3));
        },
        dense_blocks());
    EXPECT_EQ(count_ops(dfg, mix, SpaceKind::edge), 1) << print_dfg(dfg);
    EXPECT_EQ(count_ops(dfg, Op::matmul, SpaceKind::edge), 1) << print_dfg(dfg);
  }
}

TEST(Swap, LeavesEdgeValuesAndTypesAlone) {
  const Dfg edges = swapped([](Net& n) { return sum_of_tanh(n, n.linear(n.param(e(0, {4})), 3)); }, dense_blocks());
  EXPECT_EQ(count_ops(edges, Op::matmul, SpaceKind::edge), 1);
  const Dfg weighted = swapped(
      [](Net& n) {
        return sum_of_tanh(n, n.linear(n.op(Op::mul, {src(n, n.param(v(0, {4}))), n.param(e(0))}), 3));
      },
      dense_blocks());
  EXPECT_EQ(count_ops(weighted, Op::matmul, SpaceKind::edge), 1) << "the weight is the edge's own";
  const Dfg types = swapped(
      [](Net& n) {
        const NodeRef of_type =
            n.dfg.add({.op = Op::index, .inputs = {n.param(t({4}))}, .attr = Attr::type, .ints = {0}});
        return sum_of_tanh(n, n.linear(of_type, 3));
      },
      dense_blocks());
  EXPECT_EQ(count_ops(types, Op::matmul, SpaceKind::edge), 1);
}

TEST(Swap, IsNotDoneWhereEdgesAreFewer) {
  const Build build = [](Net& n) { return sum_of_tanh(n, n.linear(src(n, n.param(v(0, {4}))), 3)); };
  EXPECT_EQ(count_ops(swapped(build, sparse_blocks()), Op::matmul, SpaceKind::edge), 1);
  EXPECT_EQ(count_ops(swapped(build, dense_blocks()), Op::matmul, SpaceKind::edge), 0);
}

TEST(Swap, AttentionAddsItsEndsOnEdges) {
  for (const char* model : {"gat", "gatv2"}) {
    const PlannedModel m = plan_model(usual(model));
    int mixed = 0;
    for (const Node& node : m.plan.dfg.nodes()) {
      if (node.op != Op::add || node.type.space.kind != SpaceKind::edge) continue;
      const Node& a = m.plan.dfg[node.inputs[0]];
      const Node& b = m.plan.dfg[node.inputs[1]];
      mixed += a.op == Op::index && b.op == Op::index && a.attr == Attr::src && b.attr == Attr::dst ? 1 : 0;
    }
    EXPECT_EQ(mixed, 2) << model << "\n" << print_dfg(m.plan.dfg);
    EXPECT_GE(count_ops(m.plan.dfg, Op::leaky_relu, SpaceKind::edge), 2);
  }
}

TEST(Swap, ASequenceOfDestinationsIsNotOneOfSources) {
  const Dfg dfg = swapped(
      [](Net& n) {
        return n.op(Op::lstm, {n.linear(dst(n, n.param(v(1, {3}))), 8), n.param(p({2, 8}))});
      },
      dense_blocks());
  for (const Node& node : dfg.nodes()) {
    if (node.op == Op::lstm) {
      EXPECT_EQ(dfg[node.inputs[0]].type.space.kind, SpaceKind::edge);
    }
  }
  EXPECT_EQ(count_ops(dfg, Op::matmul, SpaceKind::edge), 0) << "the product itself moves";
}

// ---- Sums.

TEST(Swap, LinearWorkWaitsForTheSum) {
  const Dfg dfg = swapped(
      [](Net& n) { return n.op(Op::index_add, {n.op(Op::scale, {n.linear(n.param(e(0, {4})), 3)}, 2.0)}, Attr::src); },
      dense_blocks());
  SCOPED_TRACE(print_dfg(dfg));
  EXPECT_EQ(count_ops(dfg, Op::scale, SpaceKind::vertex), 1);
}

TEST(Swap, WorkThatOthersReadStaysOnEdges) {
  const Dfg dfg = swapped(
      [](Net& n) {
        const NodeRef product = n.linear(n.param(e(0, {4})), 3);
        n.dfg.set_output("product", product);
        return n.op(Op::index_add, {product}, Attr::dst);
      },
      dense_blocks());
  EXPECT_EQ(count_ops(dfg, Op::matmul), 1) << "not computed twice\n" << print_dfg(dfg);
  EXPECT_EQ(count_ops(dfg, Op::matmul, SpaceKind::edge), 1);
}

TEST(Swap, WeightGradientsSumOverEdgesFirst) {
  for (const bool gathered_first : {true, false}) {
    const Dfg dfg = swapped(
        [&](Net& n) {
          const NodeRef x = src(n, n.param(v(0, {4})));
          const NodeRef g = n.param(e(0, {3}));
          return gathered_first ? n.op(Op::weight_grad, {x, g}) : n.op(Op::weight_grad, {g, x});
        },
        dense_blocks());
    EXPECT_EQ(weight_grads_of_edges(dfg), 0) << print_dfg(dfg);
    EXPECT_EQ(count_ops(dfg, Op::weight_grad), 1);
  }
}

// ---- Values.

double worst_error(const Dfg& got, const Dfg& want, const Blocks& blocks, const ref::Bindings& bindings) {
  ref::Interpreter a(got, blocks);
  ref::Interpreter b(want, blocks);
  a.run(bindings, kStep);
  b.run(bindings, kStep);
  double worst = 0;
  for (const auto& [name, node] : want.outputs()) {
    const std::vector<double> x = a.value(got.output(name));
    const std::vector<double> y = b.value(node);
    EXPECT_EQ(x.size(), y.size());
    for (size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]) / (1 + std::abs(y[i])));
  }
  return worst;
}

TEST(Swap, KeepsValuesOfEveryModel) {
  for (const ModelCase& c : model_cases()) {
    for (const BlocksInput& input : block_inputs(17, c.options.layers)) {
      Dfg dfg = build_model(options_for(c.options, input.blocks));
      differentiate(dfg);
      const Dfg other = swap_indexing(dfg, input.blocks);
      EXPECT_LT(worst_error(other, dfg, input.blocks, model_bindings(dfg, input.blocks, 5)), 1e-10)
          << c.name << " on " << input.name;
    }
  }
}

TEST(Swap, KeepsValuesOfRandomDfgsAndOperations) {
  std::vector<std::pair<std::string, Dfg>> all;
  for (const OpCase& c : op_cases()) all.emplace_back(c.name, case_dfg(c.build, true));
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Dfg dfg = random_dfg(300 + seed, 25);
    differentiate(dfg);
    all.emplace_back("random " + std::to_string(seed), std::move(dfg));
  }
  for (const auto& [name, dfg] : all) {
    for (const Blocks& blocks : {dense_blocks(), Blocks(random_blocks(6, 2).back().layers)}) {
      const Dfg other = swap_indexing(dfg, blocks);
      EXPECT_LT(worst_error(other, dfg, blocks, random_bindings(dfg, blocks, 7, {.scale = 0.7})), 1e-9) << name;
      EXPECT_EQ(other.outputs().size(), dfg.outputs().size());
    }
  }
}

}  // namespace
}  // namespace nacre::test

// Tests what the planner promises: where fusing must happen, where it must not, and that a plan
// says why.
#include <gtest/gtest.h>

#include <set>

#include "nacre/kernel/tail_product.h"
#include "nacre/plan/draft.h"
#include "nacre/plan/operands.h"
#include "plan/plans.h"
#include "support/op_cases.h"
#include "support/random_dfg.h"

namespace nacre::test {
namespace {

bool reads_layer(const Plan& plan, const Kernel& k, const std::string& prefix) {
  return std::any_of(k.args.begin(), k.args.end(),
                     [&](NodeRef a) { return a >= 0 && plan.dfg[a].name.starts_with(prefix); });
}

TEST(Fusion, SumsOfNeighboursAreSparseProducts) {
  for (const char* model : {"gcn", "gin"}) {
    const Plan plan = plan_model(usual(model)).plan;
    // There are two layers forward, but only the second backward, because nothing before the first
    // is trained.
    EXPECT_EQ(kernels_of(plan, KernelKind::spmm).size(), 3U) << model;
    EXPECT_TRUE(kernels_of(plan, KernelKind::reduce).empty()) << model;
    EXPECT_LE(widest_stored_edge_value(plan), 1) << model;
  }
  for (const char* aggregator : {"mean", "sum"}) {
    ModelOptions options = usual("sage");
    options.aggregator = aggregator;
    for (const bool weighted : {false, true}) {
      options.edge_weighted = weighted;
      const Plan plan = plan_model(options).plan;
      EXPECT_EQ(kernels_of(plan, KernelKind::spmm).size(), 3U) << aggregator << weighted;
      EXPECT_LE(widest_stored_edge_value(plan), 1) << aggregator << weighted;
      for (const Kernel* k : kernels_of(plan, KernelKind::reduce)) {
        EXPECT_TRUE(k->once && plan.dfg[k->root].type.row_size() == 1) << "only sums of the weights themselves";
      }
    }
  }
}

TEST(Fusion, EdgeCoefficientsAreInlinedOrComputedOnce) {
  ModelOptions options = usual("gcn");
  options.edge_weighted = true;
  const Plan plan = plan_model(options).plan;
  EXPECT_TRUE(count_kernels(plan, KernelKind::map_edges, false) == 0) << plan_text(plan, plan_model(options).blocks);
  for (const Kernel* k : kernels_of(plan, KernelKind::spmm))
    EXPECT_GE(operands<SpmmOperands>(*k).weight, 0) << "the norm is the product's weight";
}

TEST(Fusion, AttentionKeepsOneNumberPerHead) {
  for (const char* model : {"gat", "gatv2"}) {
    for (const int heads : {1, 4, 8}) {
      ModelOptions options = usual(model);
      options.heads = heads;
      options.attention_dropout = heads == 8 ? 0.5 : 0;
      const Plan plan = plan_model(options).plan;
      EXPECT_EQ(kernels_of(plan, KernelKind::softmax).size(), 2U);
      EXPECT_EQ(kernels_of(plan, KernelKind::softmax_grad).size(), 2U);
      // Each of the two layers has the sum Σ α·z in the forward pass and its gradient for z.
      EXPECT_EQ(kernels_of(plan, KernelKind::spmm).size(), 4U);
      EXPECT_LE(widest_stored_edge_value(plan), heads) << model;
      for (const Kernel* k : kernels_of(plan, KernelKind::spmm)) {
        EXPECT_TRUE(k->heads == heads || k->heads == 1) << "heads of the hidden layer, one in the last";
        EXPECT_GE(operands<SpmmOperands>(*k).weight, 0);
      }
    }
  }
}

TEST(Fusion, RelationsAreMultipliedPerType) {
  for (const int64_t hidden : {64, 1}) {
    for (const int64_t in : {48, 32, 1}) {
      ModelOptions options = usual("rgcn");
      options.hidden = hidden;
      options.in_dim = in;
      // As written, whole messages are programs over gTasks.
      const PlannedModel m = plan_model(options);
      SCOPED_TRACE(plan_text(m.plan, m.blocks));
      EXPECT_EQ(kernels_of(m.plan, KernelKind::gtask).size(), 3U);
      EXPECT_EQ(kernels_of(m.plan, KernelKind::gtask_grad).size(), 2U);
      EXPECT_LE(widest_stored_edge_value(m.plan), 1);
      EXPECT_EQ(count_kernels(m.plan, KernelKind::map_edges, false), 0);
    }
  }
}

TEST(Fusion, MaximumAndItsPositionAreOnePass) {
  ModelOptions options = usual("sage");
  options.aggregator = "max";
  const Plan plan = plan_model(options).plan;
  int pairs = 0;
  for (const Kernel* k : kernels_of(plan, KernelKind::reduce)) {
    if (k->reduce_op != ReduceOp::max) continue;
    EXPECT_NE(k->why.find("maximum"), std::string::npos) << k->why;
    pairs += k->second >= 0 ? 1 : 0;
  }
  EXPECT_EQ(pairs, 1) << "the first layer's maximum has no gradient, the second's has";
  EXPECT_LE(widest_stored_edge_value(plan), 1);
}

TEST(Fusion, BothGradientsOfAnLstmAreOnePass) {
  const Plan plan = plan_model(usual("sage-lstm")).plan;
  EXPECT_EQ(kernels_of(plan, KernelKind::lstm).size(), 2U);
  ASSERT_EQ(kernels_of(plan, KernelKind::lstm_grad).size(), 2U);
  for (const Kernel* k : kernels_of(plan, KernelKind::lstm_grad)) EXPECT_GE(k->second, 0);
}

TEST(Fusion, KeptGatesOfAnLstmAreWrittenAndReadInOnePassEach) {
  PlanOptions keep;
  for (const int layer : {0, 1}) {
    for (const std::string op : {"lstm_grad_z", "lstm_grad_w"}) {
      keep.choices[op + "@layers." + std::to_string(layer) + ".lstm.weight_hh"] = "keep";
    }
  }
  const Plan plan = plan_model(usual("sage-lstm"), keep).plan;
  EXPECT_TRUE(kernels_of(plan, KernelKind::lstm_grad).empty());
  const Plan written = plan_model(usual("sage-lstm")).plan;
  EXPECT_EQ(kernels_of(plan, KernelKind::reference).size(), kernels_of(written, KernelKind::reference).size());
  ASSERT_EQ(kernels_of(plan, KernelKind::lstm).size(), 2U);
  for (const Kernel* k : kernels_of(plan, KernelKind::lstm)) {
    ASSERT_GE(k->second, 0);
    EXPECT_EQ(plan.dfg[k->second].op, Op::lstm_gates);
  }
  ASSERT_EQ(kernels_of(plan, KernelKind::lstm_gates_grad).size(), 2U);
  for (const Kernel* k : kernels_of(plan, KernelKind::lstm_gates_grad)) {
    ASSERT_GE(k->second, 0);
    EXPECT_EQ(plan.dfg[k->second].op, Op::lstm_states);
  }
}

TEST(Fusion, TheFirstLayerHasNoInputGradient) {
  for (const char* model : {"gcn", "sage", "gat", "gatv2", "rgcn", "mlp"}) {
    const Plan plan = plan_model(usual(model)).plan;
    for (const Kernel& k : plan.kernels) {
      EXPECT_FALSE(k.transpose && reads_layer(plan, k, "layers.0.")) << model << ", kernel of %" << k.root;
    }
    for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
      const Node& node = plan.dfg[i];
      EXPECT_FALSE(node.op == Op::matmul_t && node.type.row_size() == 48) << model << " %" << i;
    }
  }
}

TEST(Fusion, RowWiseWorkRunsWithItsKernel) {
  ModelOptions options = usual("gcn");
  options.dropout = 0.5;
  options.norm = "layer";
  const Plan plan = plan_model(options).plan;
  for (const Op op : {Op::relu, Op::row_normalize, Op::relu_grad, Op::row_normalize_grad, Op::log_softmax}) {
    for (const Kernel& k : plan.kernels) {
      EXPECT_FALSE(plan.dfg[k.root].op == op && k.kind == KernelKind::map) << op_info(op).name << " runs alone";
    }
  }
}

TEST(Fusion, DropoutFoldsIntoTheReluGradient) {
  ModelOptions options = usual("gcn", 3);
  options.dropout = 0.5;
  const PlannedModel relu = plan_model(options);
  EXPECT_EQ(count_ops(relu.plan.dfg, Op::dropout), 2) << "forward only";
  EXPECT_EQ(count_ops(relu.dfg, Op::dropout), 4);
  for (NodeRef i = 0; i < relu.plan.dfg.size(); ++i) {
    EXPECT_FALSE(relu.plan.dfg[i].op == Op::relu && relu.plan.stored[i]) << "its sign is in the dropout";
  }
  options.activation = "elu";
  EXPECT_EQ(count_ops(plan_model(options).plan.dfg, Op::dropout), 4) << "elu's gradient needs more than a sign";
}

// ---- Kernels that run once.

TEST(Hoisting, TheFirstAggregationOverFeaturesIsConstant) {
  for (const char* model : {"gcn", "sage", "gin"}) {
    for (const int64_t in : {48, 100}) {
      ModelOptions options = usual(model);
      options.in_dim = in;
      // GIN puts its product first if that narrows the rows.
      const int written = std::string(model) == "gin" && in > options.hidden ? 0 : 1;
      EXPECT_EQ(count_kernels(plan_model(options).plan, KernelKind::spmm, true), written) << model << in;
      options.input_dropout = 0.5;
      EXPECT_EQ(count_kernels(plan_model(options).plan, KernelKind::spmm, true), 0) << model << " draws new features";
    }
  }
}

TEST(Hoisting, LayersShareTheNormalisation) {
  for (const bool weighted : {false, true}) {
    ModelOptions options = usual("gcn", 4);
    options.edge_weighted = weighted;
    const Plan plan = plan_model(options).plan;
    int edge_values = 0;
    for (const Kernel& k : plan.kernels) {
      for (const NodeRef w : k.writes) edge_values += plan.dfg[w].type.space.kind == SpaceKind::edge ? 1 : 0;
    }
    EXPECT_EQ(edge_values, 1) << "one coefficient per edge for all layers";
  }
  const Plan rgcn = plan_model(usual("rgcn", 3)).plan;
  EXPECT_EQ(count_kernels(rgcn, KernelKind::map_edges, true), 1);
}

TEST(Hoisting, BlocksOfTheirOwnShareNothing) {
  const Blocks blocks(random_blocks(4, 3).front().layers);
  const PlannedModel m = plan_on(blocks, usual("gcn", 3));
  for (NodeRef i = 0; i < m.plan.dfg.size(); ++i) {
    const NodeRef owner = m.plan.alias[i];
    EXPECT_EQ(m.plan.dfg[i].type.space, m.plan.dfg[owner].type.space) << "%" << i;
  }
}

TEST(Hoisting, OffMeansNothingIsOnce) {
  for (const ModelCase& c : model_cases()) {
    const Plan plan = plan_model(c.options, {.fuse = true, .hoist = false}).plan;
    EXPECT_TRUE(std::none_of(plan.kernels.begin(), plan.kernels.end(), [](const Kernel& k) { return k.once; }))
        << c.name;
  }
}

// ---- Every plan.

TEST(EveryPlan, RunsNoReferenceKernelInAStep) {
  std::set<std::string> seen;
  for (const ModelCase& c : model_cases()) {
    seen.insert(c.options.model);
    const PlannedModel m = plan_model(c.options);
    EXPECT_EQ(count_kernels(m.plan, KernelKind::reference, false), 0) << c.name << "\n" << plan_text(m.plan, m.blocks);
  }
  for (const ModelInfo* info : model_list())
    EXPECT_TRUE(seen.contains(info->name)) << info->name << " is not among the cases";
}

void expect_sound(const Plan& plan, const std::string& name) {
  std::set<NodeRef> used;
  for (const Kernel& k : plan.kernels) used.insert(k.reads.begin(), k.reads.end());
  for (const auto& [output, node] : plan.dfg.outputs()) used.insert(plan.alias[node]);
  for (const auto& [state, node] : plan.dfg.updates()) used.insert(plan.alias[node]);
  for (const Kernel& k : plan.kernels) {
    EXPECT_TRUE(std::any_of(k.writes.begin(), k.writes.end(), [&](NodeRef w) { return used.contains(w); }))
        << name << ": nobody needs kernel of %" << k.root;
    const bool fallback = k.kind == KernelKind::reference || k.kind == KernelKind::reduce ||
                          k.kind == KernelKind::gtask || k.kind == KernelKind::gtask_grad;
    // Products of stored rows and sums of pairs are no fallbacks, but may say why they are not
    // fused: a fused kernel would do both in one.
    const bool between = k.kind == KernelKind::typed_rows_grad || (k.kind == KernelKind::spmm && !plan.options.fuse);
    EXPECT_TRUE(between || k.why.empty() == !fallback) << name << ": %" << k.root << " " << k.why;
    EXPECT_GT(k.floor_bytes, 0) << name << ": %" << k.root;
    for (const RowProgram* program : {&k.program, &k.tail}) EXPECT_LE(program->widths.size(), 128U) << name;
  }
}

TEST(EveryPlan, NeedsAllItsKernelsAndExplainsFallbacks) {
  for (const ModelCase& c : model_cases()) {
    for (const BlocksInput& input : block_inputs(5, c.options.layers)) {
      for (const bool fuse : {true, false}) {
        // Without edges, some kernels move no bytes, so their floors are 0 bytes.
        if (input.blocks.layer(0).num_edges() == 0) continue;
        expect_sound(plan_on(input.blocks, c.options, {fuse, fuse}).plan, c.name + " on " + input.name);
      }
    }
  }
  for (const char* option : {"edge", "src", "dst", "aggregate", "combine"}) {
    for (const char* model : {"rgcn", "gcn", "sage"}) {
      const PlannedModel m = plan_model(usual(model));
      expect_sound(plan_on(m.blocks, usual(model), choosing(m, option)).plan, std::string(model) + " by " + option);
    }
  }
  const Blocks blocks = Blocks::full(random_graphs(6).front().graph, 2);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Dfg dfg = random_dfg(seed, 25);
    differentiate(dfg);
    expect_sound(make_plan(dfg, blocks, {}), "random DFG " + std::to_string(seed));
  }
}

bool multiplies_in_tail(const Kernel& k) { return has_products(k.tail); }

TEST(Fusion, ProductsThatAreAddedShareAKernel) {
  ModelOptions options = usual("sage", 3);
  const PlannedModel apart = plan_model(options);
  const int64_t rows = apart.blocks.rows(Space::vertex(1));
  const PlannedModel joined = plan_model(options, {.join_products = {rows, 64}});
  SCOPED_TRACE(plan_text(joined.plan, joined.blocks));
  // lin_l and lin_r of every layer. In gradients, a sum over neighbours lies between the two.
  EXPECT_EQ(std::count_if(joined.plan.kernels.begin(), joined.plan.kernels.end(), multiplies_in_tail), 3);
  EXPECT_EQ(kernels_of(joined.plan, KernelKind::matmul).size() + 3, kernels_of(apart.plan, KernelKind::matmul).size());
  for (const Kernel& k : joined.plan.kernels) {
    RowProgram tail = k.tail;
    EXPECT_TRUE(!multiplies_in_tail(k) || (take_product(tail) && !has_products(tail)))
        << "one of them can be taken out";
  }
  const auto none_joined = [&](const PlanOptions& how) {
    const PlannedModel m = plan_model(options, how);
    return std::none_of(m.plan.kernels.begin(), m.plan.kernels.end(), multiplies_in_tail);
  };
  EXPECT_TRUE(none_joined({.join_products = {rows + 1}})) << "too few rows";
  EXPECT_TRUE(none_joined({.fuse = false, .hoist = false, .join_products = {1}}));
  options.hidden = 63;
  options.out_dim = 13;
  EXPECT_TRUE(none_joined({.join_products = {1, 64}})) << "an odd number of columns";
  EXPECT_FALSE(none_joined({.join_products = {1}}));
  options.hidden = options.out_dim = 66;
  EXPECT_TRUE(none_joined({.join_products = {1, 64}})) << "too many columns";
}

bool has_dots(const Kernel& k) {
  return std::any_of(k.program.code.begin(), k.program.code.end(), [](const Micro& m) { return m.op == MicroOp::dot; });
}

// The gradient of attention needs the dot product of the two ends of every edge. The sum that gives
// the sources their gradients gathers the same rows.
TEST(Fusion, DotProductsOfEdgesShareTheKernelOfASum) {
  for (const int64_t heads : {1, 2}) {
    ModelOptions options = usual("gat", 3);
    options.heads = heads;
    const PlannedModel apart = plan_model(options), joined = plan_model(options, {.join_dots = true});
    SCOPED_TRACE(plan_text(joined.plan, joined.blocks));
    for (const Kernel* k : kernels_of(apart.plan, KernelKind::softmax_grad)) EXPECT_TRUE(has_dots(*k));
    const auto softmax = kernels_of(joined.plan, KernelKind::softmax_grad);
    ASSERT_EQ(softmax.size(), 3U);
    for (const Kernel* k : softmax) EXPECT_FALSE(has_dots(*k));
    int sums = 0;
    for (const Kernel* k : kernels_of(joined.plan, KernelKind::spmm)) {
      if (k->second < 0) continue;
      ++sums;
      EXPECT_GE(operands<SpmmOperands>(*k).own, 0);
      EXPECT_TRUE(joined.plan.stored[k->second]);
    }
    EXPECT_EQ(sums, 3) << "one for each layer";
    EXPECT_EQ(joined.plan.kernels.size(), apart.plan.kernels.size());
    const PlannedModel op_by_op = plan_model(options, {.fuse = false, .hoist = false, .join_dots = true});
    for (const Kernel& k : op_by_op.plan.kernels) EXPECT_LT(k.second, 0) << "every operation has its own kernel";
  }
}

// Rows that are read often are summed in tiles of columns. A tile does not have the whole row, so
// it cannot compute dot products.
TEST(Fusion, DotProductsOfDenseGraphsStayApart) {
  ModelOptions options = usual("gat", 2);
  EdgeList edges;
  edges.num_nodes = 80;
  for (NodeId v = 0; v < 80; ++v) {
    for (NodeId u = 0; u < 80; ++u) {
      edges.src.push_back(u);
      edges.dst.push_back(v);
    }
  }
  const Blocks dense = Blocks::full(build_graph(std::move(edges), "dense"), 2);
  for (const int64_t heads : {1, 2}) {
    options.heads = heads;
    Dfg dfg = build_model(options_for(options, dense));
    differentiate(dfg);
    const Plan plan = make_plan(dfg, dense, {.join_dots = true});
    const auto sums = kernels_of(plan, KernelKind::spmm);
    EXPECT_EQ(std::any_of(sums.begin(), sums.end(), [](const Kernel* k) { return k->second >= 0; }), heads > 1);
  }
}

// The product of the vertices' own rows becomes one more of the products by type, and what follows
// runs on their sum.
TEST(Fusion, ProductsByTypeTakeTheOneThatIsAddedToThem) {
  ModelOptions options = usual("rgcn", 3);
  const auto plan = [&](PlanOptions how) {
    how.keep_sums = int64_t{1} << 40;
    how.choices = choosing(plan_model(options), "dst").choices;
    return plan_model(options, how);
  };
  const PlannedModel apart = plan({.join_products = {1}}), joined = plan({.join_products = {1, 0, true}});
  SCOPED_TRACE(plan_text(joined.plan, joined.blocks));
  const auto by_type = kernels_of(joined.plan, KernelKind::typed_reduce);
  ASSERT_GE(by_type.size(), 3U) << "at least each layer's";
  for (const Kernel* k : by_type) {
    RowProgram tail = k->tail;
    EXPECT_TRUE(take_product(tail) && !has_products(tail)) << "its product can be taken out";
    EXPECT_FALSE(joined.plan.stored[k->root]) << "what nobody else reads";
  }
  EXPECT_EQ(joined.plan.kernels.size() + by_type.size(), apart.plan.kernels.size());
  for (const Kernel& k : apart.plan.kernels) EXPECT_FALSE(k.kind == KernelKind::typed_reduce && !k.tail.empty());
  // If sums are not in memory, it is not yet known how the products are computed.
  const Plan not_kept = plan_model(options, {.join_products = {1, 0, true}}).plan;
  for (const Kernel* k : kernels_of(not_kept, KernelKind::typed_reduce)) EXPECT_TRUE(k->tail.empty());
}

// A product is not joined if other nodes read it, too, or if it is a result.
TEST(Fusion, ProductsThatAreReadElsewhereStay) {
  const Blocks blocks = Blocks::full(random_graphs(6).front().graph, 1);
  for (const bool as_result : {false, true}) {
    Net net;
    const NodeRef x = net.input(v(0, {6}));
    const NodeRef first = net.op(Op::matmul, {x, net.param(p({6, 8}))});
    const NodeRef second = net.op(Op::matmul, {x, net.param(p({6, 8}))});
    net.dfg.set_output("sum", net.op(Op::relu, {net.op(Op::add, {first, second})}));
    if (as_result) net.dfg.set_output("second", second);
    const Plan plan = make_plan(net.dfg, blocks, {.join_products = {1}});
    EXPECT_EQ(std::count_if(plan.kernels.begin(), plan.kernels.end(), multiplies_in_tail), as_result ? 0 : 1);
  }
}

// The sum adds what a kernel without a tail computed and a product, so the product comes second.
TEST(Fusion, SumsJoinAProductThatCanWait) {
  const PlannedModel m = plan_model(usual("rgcn", 3), choosing(plan_model(usual("rgcn", 3)), "src"));
  SCOPED_TRACE(plan_text(m.plan, m.blocks));
  for (const Kernel* k : kernels_of(m.plan, KernelKind::map)) {
    for (const NodeRef v : k->nodes) EXPECT_NE(m.plan.dfg[v].op, Op::relu_grad);
  }
}

// Grouping cuts a long chain, because a program has only so many registers. No later pass joins the
// pieces again.
TEST(Fusion, PiecesOfALongChainStayApart) {
  constexpr int kOperations = 200;
  const Blocks blocks = Blocks::full(random_graphs(6).front().graph, 1);
  for (const bool on_features : {true, false}) {
    Net net;
    NodeRef y = net.input(v(0, {6}));
    if (!on_features) y = net.linear(y, 6);
    for (int i = 0; i < kOperations; ++i) y = i % 2 == 0 ? net.op(Op::scale, {y}, 1.25) : net.op(Op::relu, {y});
    net.finish(net.linear(y, 4));
    for (const bool training : {false, true}) {
      Dfg dfg = net.dfg;
      if (training) differentiate(dfg);
      for (const bool hoist : {false, true}) {
        const Plan plan = make_plan(dfg, blocks, {.hoist = hoist}, {.validate = true});
        SCOPED_TRACE(plan_text(plan, blocks));
        for (const Kernel& k : plan.kernels) EXPECT_LE(k.nodes.size(), kMaxTail) << "%" << k.root;
        EXPECT_GE(plan.kernels.size() * kMaxTail, static_cast<size_t>(kOperations));
      }
    }
  }
}

// A view of the same bytes is no work at all. A single block that may change is not taken for a
// whole graph.
bool is_view(const Dfg& dfg, const Node& node) {
  if (dfg.num_layers() == 1 && node.op != Op::reshape) return false;
  return node.op == Op::reshape || ((node.op == Op::index || node.op == Op::index_add) && node.attr == Attr::self);
}

TEST(EveryPlan, OpByOpStoresEverything) {
  for (const ModelCase& c : model_cases()) {
    const Plan plan = plan_model(c.options, {.fuse = false, .hoist = false}).plan;
    int computed = 0;
    for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
      const Node& node = plan.dfg[i];
      if (node.op == Op::input || node.op == Op::param) continue;
      const NodeRef owner = plan.alias[i];
      const bool leaf = plan.dfg[owner].op == Op::input || plan.dfg[owner].op == Op::param;
      EXPECT_TRUE(leaf || plan.stored[owner]) << c.name << " %" << i;
      EXPECT_TRUE(owner == i || is_view(plan.dfg, node)) << c.name << " %" << i;
      computed += is_view(plan.dfg, node) ? 0 : 1;
    }
    EXPECT_EQ(static_cast<int>(plan.kernels.size()), computed) << c.name << ": one kernel per node";
    for (const Kernel& k : plan.kernels) {
      EXPECT_EQ(k.second, -1);
      for (const NodeRef v : k.nodes) EXPECT_TRUE(v == k.root || is_view(plan.dfg, plan.dfg[v]));
    }
  }
}

// A plan depends on nothing but the DFG, the graph and the options.
TEST(EveryPlan, IsTheSameTwice) {
  for (const ModelCase& c : model_cases()) {
    const PlannedModel a = plan_model(c.options);
    const PlannedModel b = plan_model(c.options);
    EXPECT_EQ(plan_text(a.plan, a.blocks), plan_text(b.plan, b.blocks)) << c.name;
  }
}

}  // namespace
}  // namespace nacre::test

// Tests the sites where the planner must choose: which there are, what each option makes of them,
// and where none may be offered.
#include "nacre/plan/sites.h"

#include <gtest/gtest.h>

#include <set>

#include "nacre/base/error.h"
#include "plan/plans.h"
#include "support/op_cases.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{4, 1};

std::set<std::string> keys(const std::vector<Site>& sites) {
  std::set<std::string> all;
  for (const Site& site : sites) all.insert(site.key);
  return all;
}

int count_kind(const Plan& plan, KernelKind kind) { return static_cast<int>(kernels_of(plan, kind).size()); }

Dfg layer(const Build& build, bool differentiated = false) { return case_dfg(build, differentiated); }

NodeRef typed_message(Net& n, Attr end = Attr::src) {
  const NodeRef x = n.op(Op::index, {n.param(end == Attr::src ? v(0, {4}) : v(1, {4}))}, end);
  return n.op(Op::typed_matmul, {x, n.param(t({4, 3}))});
}

// ---- Typed products.

TEST(TypedSites, AreEveryProductAndGradientOfRelations) {
  const PlannedModel m = plan_model(usual("rgcn"));
  EXPECT_EQ(keys(sites_of(m)),
            (std::set<std::string>{"typed_matmul@layers.0.weight", "typed_matmul@layers.1.weight",
                                   "typed_matmul_t@layers.1.weight", "typed_weight_grad@layers.0.weight",
                                   "typed_weight_grad@layers.1.weight"}))
      << "the first layer has no input gradient";
  for (const Site& site : sites_of(m)) {
    EXPECT_EQ(site.options, (std::vector<std::string>{"edge", "src", "dst", "cover"}));
    EXPECT_EQ(site.written, "edge");
  }
}

TEST(TypedSites, BasesHaveThemToo) {
  ModelOptions options = usual("rgcn");
  options.num_bases = 2;
  const std::set<std::string> all = keys(sites_of(plan_model(options)));
  EXPECT_EQ(all.size(), 5U);
  EXPECT_TRUE(all.contains("typed_matmul_t@layers.1.comp")) << "named after a parameter it comes from";
}

TEST(TypedSites, OptionsMultiplyInTheirSpace) {
  const PlannedModel written = plan_model(usual("rgcn"));
  const std::pair<const char*, SpaceKind> spaces[] = {
      {"edge", SpaceKind::edge}, {"src", SpaceKind::pair_src}, {"dst", SpaceKind::pair_dst}};
  for (const auto& [option, space] : spaces) {
    const Plan plan = plan_model(usual("rgcn"), choosing(written, option)).plan;
    SCOPED_TRACE(print_dfg(plan.dfg));
    EXPECT_EQ(count_ops(plan.dfg, Op::typed_matmul, space), 2);
    EXPECT_EQ(count_ops(plan.dfg, Op::typed_matmul_t, space), 1);
    EXPECT_EQ(count_ops(plan.dfg, Op::typed_matmul), 2) << "nowhere else";
    for (const Node& node : plan.dfg.nodes()) {
      if (node.op != Op::typed_weight_grad) continue;
      EXPECT_EQ(plan.dfg[node.inputs[0]].type.space.kind, space);
    }
    const bool edge = space == SpaceKind::edge;
    EXPECT_EQ(count_kind(plan, KernelKind::gtask), edge ? 3 : 0);
    EXPECT_EQ(count_kind(plan, KernelKind::gtask_grad), edge ? 2 : 0);
    EXPECT_EQ(count_kind(plan, KernelKind::typed_weight_grad), edge ? 0 : 2);
    // At the end that the sum goes to, one kernel sums and multiplies. At the other end, products
    // are stored and then summed.
    const int sums_first = space == SpaceKind::pair_dst ? 2 : space == SpaceKind::pair_src ? 1 : 0;
    const int products_first = edge ? 0 : 3 - sums_first;
    EXPECT_EQ(count_kind(plan, KernelKind::typed_reduce), sums_first);
    EXPECT_EQ(count_kind(plan, KernelKind::typed_rows), products_first);
    EXPECT_EQ(count_kind(plan, KernelKind::spmm), products_first);
    EXPECT_LE(widest_stored_edge_value(plan), 1) << "messages are never stored";
    EXPECT_EQ(count_kernels(plan, KernelKind::reference, false), 0);
  }
}

TEST(TypedSites, AreChosenOneByOne) {
  PlanOptions how;
  how.choices = {{"typed_matmul@layers.0.weight", "src"}, {"typed_weight_grad@layers.1.weight", "dst"}};
  const Plan plan = plan_model(usual("rgcn"), how).plan;
  EXPECT_EQ(count_ops(plan.dfg, Op::typed_matmul, SpaceKind::pair_src), 1);
  EXPECT_EQ(count_ops(plan.dfg, Op::typed_matmul, SpaceKind::edge), 1);
  EXPECT_EQ(count_kind(plan, KernelKind::typed_weight_grad), 1);
  EXPECT_EQ(count_kind(plan, KernelKind::gtask_grad), 1);
}

TEST(TypedSites, ProductsThatOthersReadAreNotOffered) {
  EXPECT_EQ(find_sites(layer([](Net& n) { return n.op(Op::index_add, {typed_message(n)}, Attr::dst); })).size(), 1U);
  const Dfg twice = layer([](Net& n) {
    const NodeRef message = typed_message(n);
    n.dfg.set_output("top", n.op(Op::index_max, {message}, Attr::dst));
    return n.op(Op::index_add, {message}, Attr::dst);
  });
  EXPECT_TRUE(find_sites(twice).empty());
  const Dfg output = layer([](Net& n) {
    const NodeRef message = typed_message(n);
    n.dfg.set_output("messages", message);
    return n.op(Op::index_add, {message}, Attr::dst);
  });
  EXPECT_TRUE(find_sites(output).empty());
}

TEST(TypedSites, NeedSumsAtTheOtherEndAndScalarFactors) {
  const auto offered = [](const Build& build) { return !find_sites(layer(build)).empty(); };
  EXPECT_FALSE(offered([](Net& n) { return n.op(Op::index_add, {typed_message(n)}, Attr::src); })) << "the same end";
  EXPECT_TRUE(offered([](Net& n) { return n.op(Op::index_add, {typed_message(n, Attr::dst)}, Attr::src); }));
  EXPECT_FALSE(offered([](Net& n) { return n.op(Op::index_max, {typed_message(n)}, Attr::dst); })) << "a maximum";
  EXPECT_FALSE(offered([](Net& n) { return n.op(Op::index_mean, {typed_message(n)}, Attr::dst); }));
  EXPECT_FALSE(offered([](Net& n) {
    return n.op(Op::index_add, {n.op(Op::mul, {typed_message(n), n.param(e(0, {3}))})}, Attr::dst);
  })) << "a factor as wide as the message";
  EXPECT_TRUE(offered([](Net& n) {
    return n.op(Op::index_add, {n.op(Op::mul, {typed_message(n), n.param(e(0))})}, Attr::dst);
  }));
  EXPECT_FALSE(offered([](Net& n) { return n.op(Op::index_add, {n.op(Op::tanh, {typed_message(n)})}, Attr::dst); }))
      << "not linear";
  EXPECT_FALSE(offered([](Net& n) {
    const NodeRef edges = n.op(Op::typed_matmul, {n.param(e(0, {4})), n.param(t({4, 3}))});
    return n.op(Op::index_add, {edges}, Attr::dst);
  })) << "nothing repeats";
}

// ---- Aggregation and product.

TEST(AggregationSites, AreEveryWeightBehindASum) {
  const PlannedModel gcn = plan_model(usual("gcn"));
  EXPECT_EQ(
      keys(sites_of(gcn)),
      (std::set<std::string>{"matmul@layers.0.lin.weight", "matmul@layers.1.lin.weight", "matmul_t@layers.1.lin.weight",
                             "weight_grad@layers.0.lin.weight", "weight_grad@layers.1.lin.weight"}));
  for (const Site& site : sites_of(gcn)) {
    EXPECT_EQ(site.options, (std::vector<std::string>{"aggregate", "combine"}));
    EXPECT_EQ(site.written, site.key.starts_with("matmul_t") ? "combine" : "aggregate") << site.key;
  }
  for (const char* aggregator : {"mean", "sum"}) {
    for (const bool weighted : {true, false}) {
      ModelOptions options = usual("sage");
      options.aggregator = aggregator;
      options.edge_weighted = weighted;
      const std::set<std::string> all = keys(sites_of(plan_model(options)));
      EXPECT_TRUE(all.contains("matmul@layers.1.lin_l.weight")) << aggregator << weighted;
      EXPECT_TRUE(all.contains("weight_grad@layers.1.lin_l.weight")) << aggregator << weighted;
      for (const std::string& key : all) EXPECT_EQ(key.find("lin_r"), std::string::npos) << "no sum before " << key;
    }
  }
}

TEST(AggregationSites, AreNotOfferedWhereTheOrderMatters) {
  ModelOptions max = usual("sage");
  max.aggregator = "max";
  EXPECT_TRUE(sites_of(plan_model(max)).empty());
  for (const char* model : {"gat", "gatv2"}) {
    EXPECT_TRUE(sites_of(plan_model(usual(model))).empty()) << model << " weighs every head apart";
  }
  for (const Site& site : sites_of(plan_model(usual("sage-lstm")))) {
    EXPECT_TRUE(site.key.starts_with("lstm_grad")) << site.key;
  }
  EXPECT_TRUE(sites_of(plan_model(usual("mlp"))).empty());
}

TEST(AggregationSites, NeedScalarFactorsAndOneReader) {
  const auto offered = [](const Build& build) { return !find_sites(layer(build)).empty(); };
  const auto sum = [](Net& n, NodeRef x, const ValueType& factor) {
    return n.op(Op::index_add, {n.op(Op::mul, {n.op(Op::index, {x}, Attr::src), n.param(factor)})}, Attr::dst);
  };
  EXPECT_TRUE(offered([&](Net& n) { return n.linear(sum(n, n.param(v(0, {4})), e(0)), 3); }));
  EXPECT_TRUE(offered([&](Net& n) { return sum(n, n.linear(n.param(v(0, {4})), 3), e(0)); }));
  EXPECT_FALSE(offered([&](Net& n) {
    const NodeRef heads = n.to(Op::reshape, n.param(v(0, {4})), v(0, {2, 2}));
    return n.linear(n.to(Op::reshape, sum(n, heads, e(0, {2})), v(1, {4})), 3);
  })) << "per-head factors";
  EXPECT_FALSE(offered([&](Net& n) { return n.linear(n.op(Op::tanh, {sum(n, n.param(v(0, {4})), e(0))}), 3); }));
  EXPECT_FALSE(offered([&](Net& n) {
    const NodeRef product = n.linear(n.param(v(0, {4})), 3);
    n.dfg.set_output("product", product);
    return sum(n, product, e(0));
  })) << "the product is needed anyway";
}

TEST(AggregationSites, OptionsPutTheProductWhereTheySay) {
  const auto product_reads_sum = [](const Plan& plan) {
    int n = 0;
    for (const Node& node : plan.dfg.nodes()) {
      n += node.op == Op::matmul && plan.dfg[node.inputs[0]].op == Op::index_add ? 1 : 0;
    }
    return n;
  };
  const PlannedModel m = plan_model(usual("gcn"));
  EXPECT_EQ(product_reads_sum(plan_model(usual("gcn"), choosing(m, "aggregate", "matmul")).plan), 2);
  EXPECT_EQ(product_reads_sum(plan_model(usual("gcn"), choosing(m, "combine", "matmul")).plan), 0);
}

// The weight gradient takes A·x from the forward pass, or Aᵀ·g from the input gradient, so it needs
// no sum of its own.
TEST(AggregationSites, WeightGradientsShareTheSums) {
  const auto sums = [](const std::string& forward, const std::string& weight, const std::string& input) {
    PlanOptions how;
    // The first layer stays as written: one sum of features, computed once.
    how.choices = {{"matmul@layers.1.lin.weight", forward},
                   {"weight_grad@layers.1.lin.weight", weight},
                   {"matmul_t@layers.1.lin.weight", input}};
    return count_kernels(plan_model(usual("gcn"), how).plan, KernelKind::spmm, false);
  };
  EXPECT_EQ(sums("aggregate", "aggregate", "combine"), 2);
  EXPECT_EQ(sums("aggregate", "aggregate", "aggregate"), 2);
  EXPECT_EQ(sums("combine", "combine", "aggregate"), 2);
  EXPECT_EQ(sums("combine", "aggregate", "aggregate"), 3) << "A·x for the weight gradient alone";
  EXPECT_EQ(sums("aggregate", "combine", "combine"), 3) << "Aᵀ·g for the weight gradient alone";
}

TEST(AggregationSites, TheFirstLayersSumOfFeaturesIsComputedOnce) {
  const PlannedModel m = plan_model(usual("gcn"));
  const auto once = [&](const PlanOptions& how) {
    return count_kernels(plan_model(usual("gcn"), how).plan, KernelKind::spmm, true);
  };
  EXPECT_EQ(once(choosing(m, "aggregate")), 1);
  EXPECT_EQ(once(choosing(m, "combine")), 0);
  PlanOptions mixed = choosing(m, "combine");
  mixed.choices["weight_grad@layers.0.lin.weight"] = "aggregate";
  EXPECT_EQ(once(mixed), 1) << "for the weight gradient";
  for (const Site& site : sites_of(m)) {
    EXPECT_FALSE(site.key == "matmul_t@layers.0.lin.weight") << "features have no gradient";
  }
}

// ---- Choices.

TEST(Choices, OfTrainingAlsoPlanTheEvaluation) {
  for (const char* model : {"gcn", "rgcn", "sage"}) {
    const PlannedModel train = plan_model(usual(model));
    ModelOptions options = usual(model);
    options.training = false;
    for (const char* option : {"combine", "dst"}) {
      const PlanOptions how = choosing(train, option);
      if (how.choices.empty()) continue;
      PlannedModel eval = plan_model(options, how);
      EXPECT_EQ(count_ops(eval.plan.dfg, Op::weight_grad) + count_ops(eval.plan.dfg, Op::typed_weight_grad), 0);
      EXPECT_THROW(apply_choices(prepare_dfg(eval.dfg, eval.blocks, {}), how.choices, true), UserError)
          << "it has fewer sites";
    }
  }
}

TEST(Choices, UnknownSitesAndOptionsAreTheUsersError) {
  const PlannedModel m = plan_model(usual("gcn"));
  const Dfg dfg = prepare_dfg(m.dfg, m.blocks, {});
  EXPECT_NO_THROW(apply_choices(dfg, choosing(m, "combine").choices, true));
  EXPECT_NO_THROW(apply_choices(dfg, {}, true));
  EXPECT_THROW(apply_choices(dfg, {{"matmul@nowhere", "combine"}}, true), UserError);
  EXPECT_EQ(apply_choices(dfg, {{"matmul@nowhere", "combine"}}, false), apply_choices(dfg, {}, false));
  for (const bool all : {true, false}) {
    try {
      apply_choices(dfg, {{"matmul@layers.0.lin.weight", "sideways"}}, all);
      ADD_FAILURE() << "an unknown option was accepted";
    } catch (const UserError& error) {
      const std::string what = error.what();
      for (const char* part : {"matmul@layers.0.lin.weight", "sideways", "aggregate, combine"}) {
        EXPECT_NE(what.find(part), std::string::npos) << what;
      }
    }
  }
}

TEST(Choices, AsWrittenChangeNothing) {
  for (const ModelCase& c : model_cases()) {
    const PlannedModel m = plan_model(c.options);
    Choices written;
    for (const Site& site : sites_of(m)) written[site.key] = site.written;
    const Dfg dfg = prepare_dfg(m.dfg, m.blocks, {});
    EXPECT_EQ(apply_choices(dfg, written, true), apply_choices(dfg, {}, true)) << c.name;
  }
}

// People and files use the keys of sites: no two are equal, and they are the same whenever the
// model is planned.
TEST(Sites, HaveKeysOfTheirOwn) {
  for (const ModelCase& c : model_cases()) {
    const PlannedModel m = plan_model(c.options);
    const std::vector<Site> sites = sites_of(m);
    EXPECT_EQ(keys(sites).size(), sites.size()) << c.name;
    EXPECT_EQ(keys(sites), keys(sites_of(plan_model(c.options)))) << c.name;
    for (const Site& site : sites) {
      EXPECT_NE(std::find(site.options.begin(), site.options.end(), site.written), site.options.end());
      EXPECT_NE(site.key.find('@'), std::string::npos);
    }
  }
}

// Each option of a site, chosen alone, computes the same values as the DFG as written, for every
// leaf, in double precision.
TEST(Sites, EveryOptionKeepsTheValues) {
  for (const ModelCase& c : model_cases()) {
    for (const BlocksInput& input : block_inputs(18, c.options.layers)) {
      Dfg dfg = build_model(options_for(c.options, input.blocks));
      differentiate(dfg);
      const ref::Bindings bindings = model_bindings(dfg, input.blocks, 9);
      ref::Interpreter want(dfg, input.blocks);
      want.run(bindings, kStep);
      const Dfg prepared = prepare_dfg(dfg, input.blocks, {});
      const CoverLayers cover = input.blocks.cover_layers();
      for (const Site& site : find_sites(prepared, cover)) {
        for (const std::string& option : site.options) {
          if (option == site.written) continue;
          const Dfg other = apply_choices(prepared, {{site.key, option}}, true, cover);
          other.validate();
          ref::Interpreter got(other, input.blocks);
          got.run(bindings, kStep);
          for (const auto& [name, node] : dfg.outputs()) {
            const std::vector<double> x = got.value(other.output(name));
            const std::vector<double> y = want.value(node);
            for (size_t i = 0; i < y.size(); ++i) {
              ASSERT_NEAR(x[i], y[i], 1e-9 * (1 + std::abs(y[i])))
                  << c.name << " on " << input.name << ", " << site.key << " by " << option << ": " << name;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace nacre::test

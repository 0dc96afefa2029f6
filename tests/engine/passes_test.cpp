// Tests of the planner's passes: leaving out a pass that may be left out changes no value.
#include <gtest/gtest.h>

#include <set>

#include "model/cases.h"
#include "nacre/base/error.h"
#include "nacre/plan/passes.h"
#include "support/op_cases.h"
#include "support/random_dfg.h"
#include "support/random_graphs.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{5, 2};

std::vector<std::string> optional_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : pass_table()) {
    if (pass.needed == nullptr) names.emplace_back(pass.name);
  }
  return names;
}

// Compares plans in which every pass has something to do with the interpreter, leaving out each
// pass in turn.
void expect_same_without_passes(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings, size_t turn) {
  ref::Interpreter reference(dfg, blocks);
  reference.run(bindings, kStep);
  const PlanOptions all[] = {{.join_products = {1}},
                             {.hoist = false, .keep_sums = int64_t{1} << 30},
                             {.vertex_factors = true, .join_dots = true, .join_products = {1}},
                             {.table = PartitionTable::parse("src-id=3,edge-id=5")}};
  const std::vector<std::string> names = optional_passes();
  for (size_t i = 0; i < names.size(); ++i) {
    PlanOptions options = all[(turn + i) % std::size(all)];
    // Leaves out this pass, and sometimes its neighbour in the list, too.
    options.disabled_passes = {names[i], names[(i + (turn + i) % 2) % names.size()]};
    SCOPED_TRACE(options_json(options));
    const Outputs outputs = run_plan(dfg, blocks, bindings, kStep, options);
    for (const auto& [name, node] : dfg.outputs()) {
      expect_close(outputs.at(name), reference.value(node), name, 1e-4);
    }
    for (const auto& [name, node] : dfg.updates()) {
      expect_close(outputs.at("update:" + name), reference.value(node), "update of " + name, 1e-4);
    }
  }
}

TEST(Passes, AnyOptionalPassMayBeLeftOutOfRandomDfgs) {
  const std::vector<GraphCase> graphs = random_graphs(81, 9);
  const std::vector<BlocksCase> blocks = random_blocks(82, 2, 3);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Dfg dfg = random_dfg(5000 + seed, 4 + static_cast<int>(seed % 40));
    differentiate(dfg);
    const size_t which = seed % (graphs.size() + blocks.size());
    const Blocks on =
        which < graphs.size() ? Blocks::full(graphs[which].graph, 2) : Blocks(blocks[which - graphs.size()].layers);
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_same_without_passes(dfg, on, rounded_to_float(random_bindings(dfg, on, seed, {.scale = 0.7})), seed);
    if (HasFailure()) FAIL() << print_dfg(dfg);
  }
}

TEST(Passes, AnyOptionalPassMayBeLeftOutOfModels) {
  size_t turn = 0;
  for (const ModelCase& model : model_cases()) {
    const std::vector<BlocksInput> inputs = block_inputs(83, model.options.layers);
    for (size_t i = turn % 5; i < inputs.size(); i += 5) {
      ModelOptions options = options_for(model.options, inputs[i].blocks);
      options.dropout = turn % 2 == 0 ? 0.4 : 0;
      Dfg dfg = build_model(options);
      differentiate(dfg);
      SCOPED_TRACE(model.name + " on " + inputs[i].name);
      expect_same_without_passes(dfg, inputs[i].blocks, rounded_to_float(model_bindings(dfg, inputs[i].blocks, 84)),
                                 turn++);
      if (HasFailure()) return;
    }
  }
}

// A program with all operations of these chains would have more registers than a kernel can hold.
TEST(Passes, LongChainsOfOperationsRun) {
  const Blocks blocks = Blocks::full(random_graphs(86, 9)[3].graph, 1);
  for (const bool on_features : {true, false}) {
    for (const bool training : {false, true}) {
      SCOPED_TRACE(std::string(on_features ? "on features" : "on a product") + (training ? ", training" : ""));
      const auto chain = [&](Net& net) {
        NodeRef y = net.input(v(0, {6}));
        if (!on_features) y = net.linear(y, 6);
        for (int i = 0; i < 100; ++i) y = net.op(Op::relu, {net.op(Op::scale, {y}, i % 2 == 0 ? 1.25 : 0.8)});
        return net.linear(y, 4);
      };
      const Dfg dfg = case_dfg(chain, training);
      expect_plans_agree(dfg, blocks, rounded_to_float(random_bindings(dfg, blocks, 87)), kStep, 1e-4);
    }
  }
}

TEST(Passes, TheTableSaysWhyEachPassStandsWhereItStands) {
  std::set<std::string> names;
  for (const Pass& pass : pass_table()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_GT(std::string(pass.place).size(), 20u) << pass.name;
    EXPECT_NE(pass.run, nullptr) << pass.name;
    if (pass.needed == nullptr) {
      EXPECT_NO_THROW(check_disabled_passes({pass.name}, "--disable-pass")) << pass.name;
    } else {
      EXPECT_THROW(check_disabled_passes({pass.name}, "--disable-pass"), UserError) << pass.name;
    }
  }
  EXPECT_THROW(check_disabled_passes({"grope"}, "--disable-pass"), UserError);
  EXPECT_THROW(choose_pass("grope", "--stop-after"), UserError);
  EXPECT_EQ(choose_pass("Sink-Tails", "--stop-after"), "sink_tails");
  try {
    choose_pass("sink_tail", "--stop-after");
    FAIL() << "an unknown pass was taken";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'sink_tails'?"), std::string::npos) << error.what();
  }
}

TEST(Passes, APlanCanBeSeenAfterEveryPass) {
  const Blocks blocks = Blocks::full(random_graphs(85, 9)[3].graph, 2);
  Dfg dfg = build_model(options_for(model_cases()[0].options, blocks));
  differentiate(dfg);
  bool kernels = false;
  for (const Pass& pass : pass_table()) {
    const Plan plan = make_plan(dfg, blocks, {}, {.stop_after = pass.name, .validate = true});
    EXPECT_EQ(plan.passes.back().pass, pass.name);
    kernels = kernels || std::string(pass.name) == "group";
    EXPECT_EQ(!plan.kernels.empty(), kernels) << pass.name;
    const std::string text = plan_text(plan, blocks);
    EXPECT_NE(text.find(print_dfg(plan.dfg)), std::string::npos) << pass.name;
    EXPECT_EQ(text.find("every step") != std::string::npos, kernels) << pass.name;
  }
}

}  // namespace
}  // namespace nacre::test

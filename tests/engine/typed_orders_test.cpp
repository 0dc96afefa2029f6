// Tests the orders of the edges that typed kernels walk: which of them stay in the memory of a
// device, and that sums computed once, which bring their own orders, equal those of any step.
#include <gtest/gtest.h>

#include "model/cases.h"
#include "nacre/device/null_device.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/plan/cost.h"
#include "support/big_graphs.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr StepContext kTypedStep{5, 3};

Dfg rgcn(const Blocks& blocks) {
  ModelOptions options;
  options.model = "rgcn";
  options.layers = blocks.num_layers();
  options.in_dim = 6;
  options.hidden = 8;
  options.out_dim = 3;
  Dfg dfg = build_model(options_for(options, blocks));
  differentiate(dfg);
  return dfg;
}

// Returns options that walk the first layer by `first` and the others by `rest`.
PlanOptions by_ends(const Dfg& dfg, const Blocks& blocks, const std::string& first, const std::string& rest) {
  PlanOptions options;
  options.keep_sums = int64_t{1} << 40;
  for (const Site& site : find_sites(prepare_dfg(dfg, blocks, options), blocks.cover_layers())) {
    options.choices[site.key] = site.key.find("layers.0") != std::string::npos ? first : rest;
  }
  return options;
}

TEST(TypedOrders, OnlyWhatStepsWalkStaysInDeviceMemory) {
  const Graph graph = typed_weighted_graph({.vertices = 200, .edges = 60000, .hub_edges = 100, .types = 3});
  const Blocks blocks = Blocks::full(graph, 3);
  const Dfg dfg = rgcn(blocks);
  const int64_t array = graph.num_edges() * 4;
  for (const std::string rest : {"src", "dst"}) {
    const auto loader = std::make_shared<GpuCompiler>(make_null_device(typical_gpu()),
                                                      [](const cuda::Source&) { return std::string(); });
    const auto backend =
        make_gpu_backend(std::make_shared<GpuContext>(loader, std::make_shared<GraphViews>(), GpuOptions{}));
    Executor executor(make_plan(dfg, blocks, by_ends(dfg, blocks, "dst", rest)), blocks, backend);
    for (NodeRef i = 0; i < dfg.size(); ++i) {
      if (op_info(dfg[i].op).op_class == OpClass::leaf) executor.bind(dfg[i].name, backend->allocate(16).get());
    }
    ConstantPool pool;
    executor.allocate(backend->allocate(executor.arena_bytes()), pool);
    const int64_t orders = order_bytes(executor.plan(), blocks);
    EXPECT_GE(backend->graph_bytes(), orders) << rest;
    // Besides the orders, there are edge numbers that bring scales into their order, and lists of
    // pieces and pairs.
    EXPECT_LT(backend->graph_bytes(), orders + 2 * array) << rest;
  }
}

// Compares a product that joins the products by type, with what follows it, with a product of its
// own.
TEST(TypedOrders, ProductsThatJoinThemAgree) {
  for (const BlocksInput& input : block_inputs(92, 2)) {
    SCOPED_TRACE(input.name);
    const Dfg dfg = rgcn(input.blocks);
    const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 18));
    ref::Interpreter reference(dfg, input.blocks);
    reference.run(bindings, kTypedStep);
    for (const std::string end : {"dst", "src"}) {
      PlanOptions options = by_ends(dfg, input.blocks, "dst", end);
      options.join_products = {1, 0, true};
      const Outputs outputs = run_plan(dfg, input.blocks, bindings, kTypedStep, options, 2);
      for (const auto& [name, node] : dfg.outputs()) expect_close(outputs.at(name), reference.value(node), name);
    }
  }
}

TEST(TypedOrders, SumsTakenOnceHaveTheBitsOfThoseOfAStep) {
  for (const BlocksInput& input : block_inputs(91, 2)) {
    SCOPED_TRACE(input.name);
    const Dfg dfg = rgcn(input.blocks);
    const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 17));
    for (const std::string first : {"dst", "src"}) {
      for (const std::string rest : {"dst", "src"}) {
        PlanOptions options = by_ends(dfg, input.blocks, first, rest);
        const Outputs once = run_plan(dfg, input.blocks, bindings, kTypedStep, options, 2);
        options.hoist = false;
        const Outputs each = run_plan(dfg, input.blocks, bindings, kTypedStep, options);
        for (const auto& [name, values] : each) {
          EXPECT_TRUE(same_bits(values, once.at(name))) << name << " by " << first << ", then " << rest;
        }
      }
    }
  }
}

}  // namespace
}  // namespace nacre::test

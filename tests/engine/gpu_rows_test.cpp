// What only large graphs make a GPU do, on small ones: column tiles, rows in pieces, tails after tiles, rows that take
// a block of threads. Against the double-precision interpreter; without a GPU (NACRE_TEST_DEVICE=cuda) there is nothing
// to see.
#include <gtest/gtest.h>

#include "model/cases.h"
#include "support/big_graphs.h"
#include "support/run_plan.h"
#include "support/values.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{3, 1};

class GpuRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!testing_gpu()) GTEST_SKIP() << "NACRE_TEST_DEVICE is not cuda";
  }
  void TearDown() override { test_gpu_options() = {.tune = false}; }
};

void expect_models_agree(const Graph& graph, const std::vector<std::string>& models, int64_t hidden,
                         double tolerance = 1e-4) {
  for (const ModelCase& model : model_cases()) {
    if (std::find(models.begin(), models.end(), model.name) == models.end()) continue;
    const Blocks blocks = Blocks::full(graph, model.options.layers);
    ModelOptions options = model.options;
    options.hidden = hidden;
    Dfg dfg = build_model(options_for(options, blocks));
    differentiate(dfg);
    SCOPED_TRACE(model.name);
    const ref::Bindings bindings = rounded_to_float(random_bindings(dfg, blocks, 17, {.scale = 0.2, .gap = 0.01}));
    ref::Interpreter reference(dfg, blocks);
    reference.run(bindings, kStep);
    const Outputs outputs = run_plan(dfg, blocks, bindings, kStep, {});
    for (const auto& [name, node] : dfg.outputs())
      expect_close(outputs.at(name), reference.value(node), name, tolerance);
  }
}

TEST_F(GpuRowsTest, ColumnTilesAgree) {
  test_gpu_options().cache_bytes = 1024;
  expect_models_agree(typed_weighted_graph({.vertices = 90, .edges = 90 * 70, .hub_edges = 200, .seed = 4}),
                      {"gcn", "gcn_weighted", "sage_mean", "sage_sum", "gin"}, 128);
}

TEST_F(GpuRowsTest, LongRowsAgree) {
  expect_models_agree(typed_weighted_graph({.vertices = 900, .edges = 3000, .hub_edges = 880, .seed = 5}),
                      {"gcn", "gcn_weighted", "sage_mean", "sage_max", "gat", "gatv2", "rgcn"}, 64);
}

// bf16 has eight bits: a few layers and their gradients leave about two digits.
TEST_F(GpuRowsTest, Bf16Agrees) {
  test_gpu_options().precision = GemmType::bf16;
  const Graph graph = typed_weighted_graph({.vertices = 300, .edges = 3000, .hub_edges = 290, .seed = 6});
  const std::vector<std::string> models = {"gcn",      "gcn_weighted", "gcn_batch_norm", "sage_mean",
                                           "sage_sum", "gat",          "gatv2",          "rgcn"};
  expect_models_agree(graph, models, 64, 5e-2);
  // Widths that are no multiple of eight stay f32 next to those that are.
  expect_models_agree(graph, models, 20, 5e-2);
  // Sums without division, and an LSTM's gates, make more of a rounded digit.
  expect_models_agree(graph, {"gin", "sage_lstm"}, 32, 1e-1);
}

TEST_F(GpuRowsTest, Bf16ColumnTilesAgree) {
  test_gpu_options().precision = GemmType::bf16;
  test_gpu_options().cache_bytes = 1024;
  expect_models_agree(typed_weighted_graph({.vertices = 90, .edges = 90 * 70, .hub_edges = 200, .seed = 4}),
                      {"gcn", "gcn_weighted", "sage_mean"}, 128, 3e-2);
}

}  // namespace
}  // namespace nacre::test

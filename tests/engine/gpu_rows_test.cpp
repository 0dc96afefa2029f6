// Tests on small graphs what a GPU does only for large ones: column tiles, rows in pieces, tails
// after tiles, rows that take a block of threads. Results are compared with the double-precision
// interpreter. Without a GPU (NACRE_TEST_DEVICE=cuda), these tests are skipped.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "model/cases.h"
#include "nacre/device/device.h"
#include "nacre/engine/block_runner.h"
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

// Returns how often each variant was taken.
std::map<std::string, int> expect_models_agree(const Graph& graph, const std::vector<std::string>& models,
                                               int64_t hidden, double tolerance = 1e-4, const PlanOptions& how = {}) {
  std::map<std::string, int> taken;
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
    const DeviceTraits device = test_backend(std::make_shared<GraphViews>())->traits();
    BoundPlan bound(make_plan(dfg, blocks, how, {.validate = true, .device = &device}), blocks, bindings);
    const Outputs outputs = run_plan(bound, bindings, kStep, 2);
    for (const auto& [name, node] : dfg.outputs())
      expect_close(outputs.at(name), reference.value(node), name, tolerance);
    for (const Kernel& kernel : bound.executor().plan_as_bound().kernels) {
      for (const VariantChoice& v : kernel.variants) ++taken[v.variant];
    }
  }
  return taken;
}

TEST_F(GpuRowsTest, ColumnTilesAgree) {
  test_gpu_options().cache_bytes = 1024;
  expect_models_agree(typed_weighted_graph({.vertices = 90, .edges = 90 * 70, .hub_edges = 200, .seed = 4}),
                      {"gcn", "gcn_weighted", "sage_mean", "sage_sum", "gin"}, 128);
}

// Devices that share a cache read narrow tiles, or one block of vertices after the other.
TEST_F(GpuRowsTest, NarrowTilesAndBlocksOfSourcesAgree) {
  test_gpu_options().cache_bytes = 1024;
  test_gpu_options().busy_multiprocessors = 1 << 12;
  const Graph graph = typed_weighted_graph({.vertices = 90, .edges = 90 * 70, .hub_edges = 200, .seed = 4});
  for (const char* columns : {"tiles", "tiles of 32 columns", "tiles of 16 columns", "whole rows"}) {
    for (const char* sources : {"4 blocks", "all at once"}) {
      SCOPED_TRACE(std::string(columns) + ", " + sources);
      PlanOptions options;
      options.variants = {{"columns", columns}, {"sources", sources}};
      const std::map<std::string, int> taken =
          expect_models_agree(graph, {"gcn_weighted", "sage_mean"}, 128, 1e-4, options);
      EXPECT_GT(taken.at(columns), 0);
      EXPECT_GT(taken.at(sources), 0);
    }
  }
}

// Tests tiles that overlap and are read from a copy, a row that is one tile, and tiles of one line
// each.
TEST_F(GpuRowsTest, ColumnTilesOfOtherWidthsAgree) {
  test_gpu_options().cache_bytes = 1024;
  const Graph graph = typed_weighted_graph({.vertices = 90, .edges = 90 * 70, .hub_edges = 200, .seed = 4});
  for (const int64_t width : {100, 140, 40, 96}) expect_models_agree(graph, {"gcn_weighted", "sage_mean"}, width);
}

TEST_F(GpuRowsTest, LongRowsAgree) {
  expect_models_agree(typed_weighted_graph({.vertices = 900, .edges = 3000, .hub_edges = 880, .seed = 5}),
                      {"gcn", "gcn_weighted", "sage_mean", "sage_max", "gat", "gatv2", "rgcn"}, 64);
}

Tensor leaf_values(const Node& leaf, const std::vector<double>& values) {
  Tensor out(leaf.type.dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    switch (leaf.type.dtype) {
      case DType::i32:
        out.data<int32_t>()[i] = static_cast<int32_t>(values[i]);
        break;
      case DType::u8:
        out.data<uint8_t>()[i] = static_cast<uint8_t>(values[i]);
        break;
      default:
        out.data<float>()[i] = static_cast<float>(values[i]);
    }
  }
  return out;
}

// What is made for one batch (edges by source for the device alone, with rows in pieces) gives the
// same bits as what is made once for all steps.
TEST_F(GpuRowsTest, ABatchHasTheBitsOfAGraphTrainedWhole) {
  const BigGraph how{.vertices = 300, .edges = 1500, .hub_edges = 290, .seed = 8};
  for (const ModelCase& model : model_cases()) {
    if (model.name != "gcn_weighted" && model.name != "sage_mean" && model.name != "sage_max" && model.name != "gat")
      continue;
    SCOPED_TRACE(model.name);
    const Blocks whole = Blocks::full(typed_weighted_graph(how), model.options.layers);
    Dfg dfg = build_model(options_for(model.options, whole));
    differentiate(dfg);
    const ref::Bindings bindings = rounded_to_float(random_bindings(dfg, whole, 21, {.scale = 0.2, .gap = 0.01}));
    const PlanOptions every_step{.hoist = false};
    const Outputs want = run_plan(dfg, whole, bindings, kStep, every_step);

    const Blocks blocks = Blocks::full(typed_weighted_graph(how), model.options.layers);
    BlockRunner runner(make_plan(dfg, blocks, every_step), test_backend(std::make_shared<GraphViews>()));
    std::vector<LeafValue> leaves;
    for (const Node& node : runner.plan().dfg.nodes()) {
      if (node.op == Op::input || node.op == Op::param)
        leaves.push_back({node.name, leaf_values(node, bindings.at(node.name))});
    }
    const BlockRunner::Ready batch = runner.make_ready(blocks, leaves, {});
    batch.executor->run_once(kStep);
    for (const auto& [name, node] : dfg.outputs()) {
      const float* values = batch.executor->output(name);
      EXPECT_TRUE(same_bits({values, values + want.at(name).size()}, want.at(name))) << name;
    }
    EXPECT_FALSE(blocks.layer(0).has_out());
  }
}

// bf16 has eight bits, so a few layers and their gradients leave about two digits. Each model has
// its own test, because the compiler takes nearly all of the time and tests can be divided among
// processes.
class GpuBf16Test : public GpuRowsTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuBf16Test, Agrees) {
  test_gpu_options().precision = GemmType::bf16;
  const Graph graph = typed_weighted_graph({.vertices = 300, .edges = 3000, .hub_edges = 290, .seed = 6});
  const std::string model = GetParam();
  // Sums without division, and the gates of an LSTM, enlarge rounding errors.
  if (model == "gin" || model == "sage_lstm") {
    expect_models_agree(graph, {model}, 32, 1e-1);
    return;
  }
  expect_models_agree(graph, {model}, 64, 5e-2);
  // Values whose widths are no multiple of eight stay f32 beside the others.
  expect_models_agree(graph, {model}, 20, 5e-2);
}

INSTANTIATE_TEST_SUITE_P(Models, GpuBf16Test,
                         testing::Values("gcn", "gcn_weighted", "gcn_batch_norm", "sage_mean", "sage_sum", "gat",
                                         "gatv2", "rgcn", "gin", "sage_lstm"),
                         [](const auto& model) { return std::string(model.param); });

// The training step of a model, and its results in double precision. The activation has no corners,
// so rounding cannot change the side of a corner.
struct Trained {
  Trained(ModelOptions options, const Blocks& blocks, uint64_t seed, double scale) {
    options.activation = "tanh";
    dfg = build_model(options_for(options, blocks));
    differentiate(dfg);
    bindings = rounded_to_float(random_bindings(dfg, blocks, seed, {.scale = scale, .gap = 0.01}));
    ref::Interpreter reference(dfg, blocks);
    reference.run(bindings, kStep);
    for (const auto& [name, node] : dfg.outputs()) want[name] = reference.value(node);
  }
  Dfg dfg;
  ref::Bindings bindings;
  std::map<std::string, std::vector<double>> want;
};

// Typed products on tensor cores take as many rows as fill the device, and with them the product of
// the vertices' own rows and what follows. Rows are no whole number of vectors, and vertices have
// few types or none.
TEST_F(GpuRowsTest, TensorCoresAgree) {
  test_gpu_options().precision = GemmType::tf32;
  const int64_t vertices = device_plugin()->devices()[0].multiprocessors * 140;
  const Graph graph =
      typed_weighted_graph({.vertices = vertices, .edges = 4 * vertices, .hub_edges = 900, .types = 4, .seed = 7});
  for (const int64_t hidden : {144, 72, 30}) {
    const Blocks blocks = Blocks::full(graph, 3);
    ModelOptions options;
    options.model = "rgcn";
    options.dropout = hidden == 144 ? 0.3 : 0;
    options.layers = 3;
    options.in_dim = 37;
    options.hidden = hidden;
    options.out_dim = 47;
    const Trained trained(options, blocks, 19, 0.2);
    for (const auto& [keep_sums, join] :
         {std::pair{int64_t{0}, false}, {int64_t{1} << 30, false}, {int64_t{1} << 30, true}}) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", kept up to " << keep_sums << ", joined " << join);
      PlanOptions how = {.keep_sums = keep_sums};
      if (join) how.join_products = {1, 256, true};
      for (const char* op : {"typed_matmul", "typed_matmul_t", "typed_weight_grad"}) {
        for (const char* layer : {"0", "1", "2"}) {
          if (std::string(op) == "typed_matmul_t" && *layer == '0') continue;
          how.choices[std::string(op) + "@layers." + layer + ".weight"] = *layer == '2' ? "src" : "dst";
        }
      }
      const Outputs outputs = run_plan(trained.dfg, blocks, trained.bindings, kStep, how, 2);
      for (const auto& [name, values] : trained.want) expect_close(outputs.at(name), values, name, 5e-3);
    }
  }
}

// Products and what follows them run in one kernel, on more tiles of rows than the device has
// places and on less than one tile. The numbers of columns are no multiples of eight. Tails sum
// over rows, drop elements, overwrite what they read, or keep the result of the product. Two
// products are added.
class GpuProductsTest : public GpuRowsTest, public testing::WithParamInterface<std::tuple<const char*, int64_t>> {};

TEST_P(GpuProductsTest, AgreeWithTheirTails) {
  test_gpu_options().precision = GemmType::tf32;
  const auto& [model, hidden] = GetParam();
  const int64_t places = device_plugin()->devices()[0].multiprocessors;
  for (const int64_t vertices : {places * 140, int64_t{61}}) {
    const Graph graph = typed_weighted_graph({.vertices = vertices, .edges = 4 * vertices, .hub_edges = 60, .seed = 8});
    const Blocks blocks = Blocks::full(graph, 3);
    ModelOptions options;
    options.model = model;
    options.layers = 3;
    options.in_dim = 37;
    options.hidden = hidden;
    if (options.model == "gat") options.heads = 2;
    options.out_dim = 46;
    options.dropout = hidden == 72 ? 0.3 : 0;
    const Trained trained(options, blocks, 23, 0.1);
    // The products of the library are as inexact as ours if their rows are whole vectors; others
    // it computes in f32. Gradients of attention are small differences.
    const double tolerance = options.model == "gat" ? 2e-2 : 2e-3;
    const auto errors = [&](int64_t least, int64_t join) {
      test_gpu_options().whole_products = least;
      std::map<std::string, double> all;
      const Outputs got = run_plan(trained.dfg, blocks, trained.bindings, kStep, {.join_products = {join}}, 2);
      for (const auto& [name, values] : trained.want) all[name] = relative_error(got.at(name), values);
      return all;
    };
    const std::map<std::string, double> library = errors(0, 0);
    for (const auto& [least, join] : {std::pair{1, 0}, {1, 1}, {0, 1}}) {
      SCOPED_TRACE(testing::Message() << vertices << " vertices, hidden " << hidden << ", ours from " << least
                                      << " rows on, joined " << join);
      for (const auto& [name, error] : errors(least, join)) {
        EXPECT_LE(error, 2 * library.at(name) + tolerance) << name;
        EXPECT_LT(library.at(name), 0.1) << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuProductsTest,
                         testing::Combine(testing::Values("gcn", "sage", "gat", "gin", "mlp"),
                                          testing::Values(256, 72, 30)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" + std::to_string(std::get<1>(test.param));
                         });

TEST_F(GpuRowsTest, Bf16ColumnTilesAgree) {
  test_gpu_options().precision = GemmType::bf16;
  test_gpu_options().cache_bytes = 1024;
  expect_models_agree(typed_weighted_graph({.vertices = 90, .edges = 90 * 70, .hub_edges = 200, .seed = 4}),
                      {"gcn", "gcn_weighted", "sage_mean"}, 128, 3e-2);
}

}  // namespace
}  // namespace nacre::test

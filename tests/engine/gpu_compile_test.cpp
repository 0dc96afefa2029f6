// Compiles every kernel that the planner can ask of a GPU, for the oldest and the newest
// architecture that is supported. This needs the plug-in for its compiler, but no GPU.
#include <gtest/gtest.h>

#include <set>

#include "model/cases.h"
#include "nacre/base/error.h"
#include "nacre/cluster/in_process.h"
#include "nacre/device/null_device.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/engine/rank_block.h"
#include "nacre/kernel/cuda/exchange.h"
#include "nacre/kernel/cuda/scores.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/kernel/cuda/typed_mma.h"
#include "support/big_graphs.h"
#include "support/op_cases.h"
#include "support/random_graphs.h"
#include "support/run_plan.h"
#include "support/tail.h"

namespace nacre::test {
namespace {

// Collects the sources of every plan that is bound to it.
class Sources {
 public:
  explicit Sources(GpuOptions options = {.whole_products = 1}) : options_(options) {}
  // If `only` is not empty, it is the name of the only kernel to bind.
  void bind(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options, GemmType precision = GemmType::f32,
            const std::string& only = "") {
    const auto loader =
        std::make_shared<GpuCompiler>(make_null_device(typical_gpu()), [this, only](const cuda::Source& source) {
          if (only.empty() || source.name == only) texts_.emplace(source.text, source.name);
          return std::string();
        });
    options_.precision = precision;
    const auto context = std::make_shared<GpuContext>(loader, std::make_shared<GraphViews>(), options_);
    const DeviceTraits traits = context->traits();
    const Plan plan = make_plan(dfg, blocks, options, {.device = &traits, .variants = false});
    Executor executor(plan, blocks, make_gpu_backend(context));
    for (const Node& node : executor.plan().dfg.nodes()) {
      if (node.op == Op::input || node.op == Op::param) executor.bind(node.name, context->allocate(16).get());
    }
    ConstantPool pool;
    executor.allocate(context->allocate(executor.arena_bytes()), pool);
  }

  void add(const cuda::Source& source) { texts_.emplace(source.text, source.name); }
  // Compiles at most about `most` of the sources, evenly spread.
  void expect_compile(size_t most) const {
    std::string why;
    DevicePlugin* plugin = device_plugin(&why);
    if (plugin == nullptr) GTEST_SKIP() << why;
    const size_t stride = std::max<size_t>(1, texts_.size() / most);
    size_t i = 0;
    for (const auto& [text, name] : texts_) {
      if (i++ % stride != 0) continue;
      for (const int arch : {80, 90}) {
        EXPECT_NO_THROW(EXPECT_FALSE(plugin->compile(text, name, arch).empty())) << text;
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  size_t size() const { return texts_.size(); }
  size_t with(const std::string& part) const {
    return static_cast<size_t>(std::count_if(texts_.begin(), texts_.end(), [&](const auto& source) {
      return source.first.find(part) != std::string::npos;
    }));
  }

 private:
  GpuOptions options_;
  std::map<std::string, std::string> texts_;
};

Dfg training_dfg(const ModelOptions& options) {
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

size_t limit(size_t quick) {
  const char* all = std::getenv("NACRE_COMPILE_ALL");
  return all == nullptr ? quick : 1 << 20;
}

TEST(GpuSources, OfEveryOperationCompile) {
  Sources sources;
  const Graph graph = typed_weighted_graph({.vertices = 60, .edges = 300, .hub_edges = 40, .seed = 5});
  for (const auto& cases : {op_cases(), layer_cases()}) {
    for (const OpCase& c : cases) {
      const Dfg dfg = case_dfg(c.build, true);
      for (const NamedOptions& plan : kAllPlans) sources.bind(dfg, Blocks::full(graph, 2), plan.options);
    }
  }
  EXPECT_GT(sources.size(), 50U);
  sources.expect_compile(limit(24));
}

Graph small_graph() { return typed_weighted_graph({.vertices = 80, .edges = 400, .hub_edges = 60, .seed = 6}); }

TEST(GpuSources, OfEveryModelCompile) {
  Sources sources;
  for (const ModelCase& model : model_cases()) {
    const Blocks blocks = Blocks::full(small_graph(), model.options.layers);
    for (const bool wide : {false, true}) {
      ModelOptions options = model.options;
      options.dropout = wide ? 0 : 0.4;
      if (wide) options.hidden *= 16;
      const Dfg dfg = training_dfg(options_for(options, blocks));
      for (const NamedOptions& plan : kAllPlans) sources.bind(dfg, blocks, plan.options);
    }
  }
  EXPECT_GT(sources.size(), 50U);
  sources.expect_compile(limit(24));
}

// Returns the sources of every model with wide rows, under one plan.
Sources sources_of_models(double dropout, const PlanOptions& plan, GemmType precision, const std::string& only = "") {
  Sources sources;
  for (const ModelCase& model : model_cases()) {
    const Blocks blocks = Blocks::full(small_graph(), model.options.layers);
    ModelOptions options = model.options;
    options.hidden *= 16;
    if (dropout > 0) options.dropout = dropout;
    sources.bind(training_dfg(options_for(options, blocks)), blocks, plan, precision, only);
  }
  return sources;
}

TEST(GpuSources, OfModelsInBf16Compile) {
  const Sources sources = sources_of_models(0, {}, GemmType::bf16);
  EXPECT_GT(sources.size(), 30U);
  sources.expect_compile(limit(12));
}

TEST(GpuSources, OfModelsInTf32Compile) {
  const Sources sources = sources_of_models(0.4, {.join_products = {1}}, GemmType::tf32, "row_product");
  EXPECT_GT(sources.size(), 10U) << "products with their tails";
  sources.expect_compile(limit(6));
}

// Only large graphs ask for these kernels.
TEST(GpuSources, OfTensorCoresCompile) {
  Sources sources;
  const int64_t shared = typical_gpu().shared_bytes;
  const cuda::TypedProduct products[] = {
      {256, 256, 7, shared}, {47, 100, 40, shared}, {256, 256, 0, shared, true}, {30, 47, 0, shared, true}};
  for (const cuda::TypedProduct& what : products) {
    ASSERT_TRUE(cuda::fits(what));
    EXPECT_LE(cuda::tile_of(what).shared_bytes * cuda::tile_of(what).together, shared);
    sources.add(cuda::typed_product(what));
  }
  EXPECT_FALSE(cuda::fits(cuda::TypedProduct{2000, 256, 0, shared, true})) << "a matrix larger than the memory";
  Tail tail(256);
  tail.store(tail.apply(MicroOp::relu, tail.apply(MicroOp::add, tail.root(), tail.load(1))), 2);
  for (const int64_t types : {7, 32}) {
    const cuda::TypedProduct what = {100, 256, types, shared, false, &tail.program()};
    ASSERT_TRUE(cuda::fits(what));
    sources.add(cuda::typed_product(what));
  }
  EXPECT_FALSE(cuda::fits(cuda::TypedProduct{100, 256, 0, shared, false, &tail.program()})) << "not by cell";
  sources.add(cuda::typed_grad({256, 256, shared}));
  sources.add(cuda::typed_grad({100, 47, shared}));
  cuda::TypedSum sum = {.width = 47, .scaled = true};
  sum.length = 48;
  sources.add(cuda::typed_sum(sum));
  EXPECT_EQ(sources.size(), 9U);
  sources.expect_compile(9);
}

TEST(GpuSources, OfScoresCompile) {
  Sources sources;
  for (const cuda::ScoreLabels labels : {cuda::ScoreLabels::single, cuda::ScoreLabels::multiple}) {
    sources.add(cuda::score_rows(labels, 7));
    sources.add(cuda::score_rows(labels, 349));
    sources.add(cuda::score_loss(labels));
  }
  sources.add(cuda::score_totals());
  EXPECT_EQ(sources.size(), 7U) << "one for few classes and one for many, whatever their number";
  sources.expect_compile(limit(7));
}

// Column tiles are for rows that are read often and do not fit into the cache.
TEST(GpuSources, OfRanksCompile) {
  Sources sources;
  for (const int floats : {1, 2, 4}) {
    for (int a = 0; a <= static_cast<int>(cuda::RowAction::widen_add); ++a)
      sources.add(cuda::move_rows({floats, 5, static_cast<cuda::RowAction>(a)}));
  }
  for (const int ranks : {1, 2, 5}) {
    for (const bool doubles : {false, true}) sources.add(cuda::sum_arrays(ranks, doubles));
  }
  // This kernel draws by the numbers that rows have in the whole graph.
  const auto group = make_group(1);
  const Graph graph = random_graphs(3)[2].graph;
  const Partition parts{1, std::vector<int32_t>(static_cast<size_t>(graph.num_nodes()), 0)};
  const auto local = std::make_shared<const LocalGraph>(local_graph(graph, parts, 0));
  const Blocks blocks = Blocks::of_rank({local->graph, graph}, 2, make_rank_links({graph, parts}, local, *group[0]));
  for (const ModelCase& c : model_cases()) {
    if (c.name != "gcn" && c.name != "gat") continue;
    ModelOptions model = c.options;
    model.sampling = Sampling::blocks;
    model.dropout = 0.4;
    model.attention_dropout = model_info(model.model).heads > 0 ? 0.3 : 0;
    sources.bind(training_dfg(options_for(model, Blocks::full(graph, 2))), blocks, {});
  }
  EXPECT_GT(sources.with("step[" + std::to_string(cuda::kStepVertices)), 0U);
  EXPECT_GT(sources.with("step[" + std::to_string(cuda::kStepEdges)), 0U);
  sources.expect_compile(limit(12));
}

TEST(GpuSources, OfColumnTilesCompile) {
  Sources sources({.cache_bytes = 1024});
  const Blocks blocks = Blocks::full(typed_weighted_graph({.vertices = 60, .edges = 60 * 70, .seed = 4}), 2);
  for (const int64_t hidden : {100, 128}) {
    ModelOptions options = options_for(model_cases().front().options, blocks);
    options.hidden = hidden;
    sources.bind(training_dfg(options), blocks, {}, GemmType::f32, "reduce_sum");
  }
  EXPECT_GE(sources.with("const i64 column = tile * 64 / 1 * 1;"), 1U);
  EXPECT_GE(sources.with("const i64 column = tile * 12 / 1 * 4;"), 1U) << "tiles of 52 of 100 columns";
  EXPECT_GE(sources.with("p0 += tile * 64;"), 1U) << "which are read from a copy";
  sources.expect_compile(4);
}

NACRE_PARAMS(ToyParams, (const float*, from), (cuda::i64, count));

// What the host passes and what the kernel reads must have the same size.
TEST(GpuSources, OfAnotherSizeDoNotCompile) {
  std::string why;
  DevicePlugin* plugin = device_plugin(&why);
  if (plugin == nullptr) GTEST_SKIP() << why;
  const auto text = [](const std::string& type) {
    return cuda::Entry("toy", "32")
        .takes<ToyParams>()
        .source("namespace cuda { typedef " + type + " i64; }\n${ENTRY} {}\n", 32);
  };
  EXPECT_FALSE(plugin->compile(text("long long").text, "toy", 80).empty());
  try {
    plugin->compile(text("int").text, "toy", 80);
    FAIL() << "a kernel that reads 4 bytes of 8 was compiled";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("ToyParams passes 8 bytes"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nacre::test

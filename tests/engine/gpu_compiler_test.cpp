// Tests that kernels are compiled side by side, each of them once, and that batches of other sizes
// need no other kernels. These tests need no GPU.
#include "nacre/engine/gpu/compiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "model/cases.h"
#include "nacre/base/error.h"
#include "nacre/device/null_device.h"
#include "nacre/engine/block_runner.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/sample/sample.h"
#include "support/big_graphs.h"
#include "support/log_capture.h"

namespace nacre::test {
namespace {

cuda::Source source(int number) { return {"kernel", "source " + std::to_string(number), 128, 0}; }

// A compiler that takes a while and notes its calls.
struct SlowCompiler {
  std::atomic<int> now{0}, most{0}, calls{0};
  std::atomic<bool> hold{false};

  std::string operator()(const cuda::Source& s) {
    ++calls;
    const int together = ++now;
    for (int seen = most.load(); together > seen && !most.compare_exchange_weak(seen, together);) {
    }
    do std::this_thread::sleep_for(std::chrono::milliseconds(10));
    while (hold);
    --now;
    if (s.text == "source 13") throw RuntimeError("kernel", "number 13 does not compile");
    return s.text;
  }
};

std::unique_ptr<GpuCompiler> loader_with(SlowCompiler& compiler, int threads) {
  return std::make_unique<GpuCompiler>(
      make_null_device(typical_gpu()), [&](const cuda::Source& s) { return compiler(s); }, threads);
}

TEST(GpuCompiler, CompilesSideBySide) {
  SlowCompiler compiler;
  const auto loader = loader_with(compiler, 4);
  for (int i = 0; i < 12; ++i) loader->code(source(i));
  for (int i = 11; i >= 0; --i) EXPECT_NE(loader->code(source(i))->get(), nullptr);
  EXPECT_EQ(compiler.calls, 12);
  EXPECT_EQ(loader->num_sources(), 12);
  EXPECT_GT(compiler.most, 1);
  EXPECT_LE(compiler.most, 4);
}

TEST(GpuCompiler, CompilesWhatManyWantOnce) {
  for (const int threads : {0, 3}) {
    SlowCompiler compiler;
    const auto loader = loader_with(compiler, threads);
    std::vector<std::thread> askers;
    for (int t = 0; t < 8; ++t) {
      askers.emplace_back([&] {
        for (int i = 0; i < 3; ++i) EXPECT_NE(loader->function(source(i)), nullptr);
      });
    }
    for (std::thread& asker : askers) asker.join();
    EXPECT_EQ(compiler.calls, 3) << threads;
  }
}

TEST(GpuCompiler, WithoutThreadsTheCallerCompiles) {
  SlowCompiler compiler;
  std::thread::id by;
  GpuCompiler loader(make_null_device(typical_gpu()), [&](const cuda::Source& s) {
    by = std::this_thread::get_id();
    return s.text;
  });
  loader.code(source(1));
  EXPECT_EQ(by, std::this_thread::get_id()) << "at once";
}

TEST(GpuCompiler, WhoeverWantsAKernelThatFailsIsTold) {
  for (const int threads : {0, 2}) {
    SlowCompiler compiler;
    const auto loader = loader_with(compiler, threads);
    GpuCode* const bad = loader->code(source(13));
    GpuCode* const good = loader->code(source(14));
    for (int i = 0; i < 2; ++i) {
      try {
        bad->get();
        FAIL() << "a kernel that does not compile";
      } catch (const RuntimeError& error) {
        EXPECT_NE(std::string(error.what()).find("number 13"), std::string::npos);
      }
    }
    EXPECT_NE(good->get(), nullptr);
    EXPECT_THROW(loader->settle(), RuntimeError);
  }
}

TEST(GpuCompiler, SettlesWhatWasAskedFor) {
  SlowCompiler compiler;
  const auto loader = loader_with(compiler, 2);
  for (int i = 0; i < 5; ++i) loader->code(source(i));
  loader->settle();
  EXPECT_EQ(compiler.calls, 5);
  loader->settle();
}

TEST(GpuCompiler, EndsWithWorkLeft) {
  SlowCompiler compiler;
  compiler.hold = true;
  auto loader = loader_with(compiler, 2);
  for (int i = 0; i < 50; ++i) loader->code(source(i));
  while (compiler.now < 2) std::this_thread::yield();
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    compiler.hold = false;
  });
  loader.reset();
  release.join();
  EXPECT_LT(compiler.calls, 50) << "what nobody waits for is not compiled";
}

// A device that loads only images that end with "good".
class Fussy : public NullDevice {
 public:
  Fussy() : NullDevice(typical_gpu()) {}
  DeviceFunction load(const std::string& image, const std::string& name) override {
    if (!image.ends_with("good")) throw RuntimeError(name, "the image cannot be loaded");
    return this;
  }
};

TEST(GpuCompiler, AnImageThatCannotBeLoadedIsCompiledAgain) {
  for (const int threads : {0, 2}) {
    int again = 0;
    GpuCompiler loader(
        std::make_shared<Fussy>(), [](const cuda::Source& s) { return s.text == "source 1" ? "good" : "spoilt"; },
        threads,
        [&](const cuda::Source& s) {
          ++again;
          return s.text == "source 3" ? "spoilt otherwise" : s.text == "source 4" ? "spoilt" : "now good";
        });
    EXPECT_NE(loader.function(source(1)), nullptr);
    EXPECT_EQ(again, 0);
    EXPECT_NE(loader.function(source(2)), nullptr);
    EXPECT_NE(loader.function(source(2)), nullptr);
    EXPECT_EQ(again, 1) << "compiled again once";
    EXPECT_THROW(loader.function(source(3)), RuntimeError) << "the new image cannot be loaded either";
    EXPECT_THROW(loader.function(source(4)), RuntimeError) << "the image is the same: the device fails";
    EXPECT_EQ(again, 3);
  }
}

TEST(GpuCompiler, WithoutACacheAnImageThatCannotBeLoadedIsAnError) {
  GpuCompiler loader(std::make_shared<Fussy>(), [](const cuda::Source&) { return "spoilt"; });
  EXPECT_THROW(loader.function(source(1)), RuntimeError);
}

// The compute stream and the sampler's stream have a loader each. Users see one line for both.
TEST(GpuCompiler, LoadersTellOfTheirKernelsTogether) {
  SlowCompiler compiler;
  compiler.hold = true;
  const auto first = loader_with(compiler, 1), second = loader_with(compiler, 1);
  const LogCapture log;
  for (int i = 0; i < 3; ++i) first->code(source(i));
  for (int i = 3; i < 5; ++i) second->code(source(i));
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    compiler.hold = false;
  });
  std::thread waiting([&] { second->settle(); });
  first->settle();
  waiting.join();
  release.join();
  const std::string told = log.text();
  const auto count = [&](const std::string& words) {
    int found = 0;
    for (size_t at = told.find(words); at != std::string::npos; at = told.find(words, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("compiling 5 kernels for "), 1) << told;
  EXPECT_EQ(count("later runs use them again"), 1) << told;
  EXPECT_EQ(count("compiled 5 kernels in "), 1) << told;
}

// ---- plans

Dfg training_dfg(const std::string& model, const Graph& graph, Sampling sampling) {
  ModelOptions options;
  options.model = model;
  options.layers = 3;
  options.in_dim = 100;
  options.hidden = 256;
  options.out_dim = 47;
  options.dropout = 0.5;
  options.heads = model == "gat" ? 4 : 0;
  options.num_edge_types = graph.num_edge_types();
  options.sampling = sampling;
  Dfg dfg = build_model(complete_options(options));
  differentiate(dfg);
  return dfg;
}

// Notes how many sources had been requested when the device is first used.
class FirstLaunch : public NullDevice {
 public:
  FirstLaunch() : NullDevice(typical_gpu()) {}
  void watch(const GpuCompiler* loader) { loader_ = loader; }
  void launch(DeviceFunction, const LaunchShape&, const std::vector<void*>&) override {
    if (asked_ < 0) asked_ = loader_->num_sources();
  }
  int64_t asked() const { return asked_; }

 private:
  const GpuCompiler* loader_ = nullptr;
  int64_t asked_ = -1;
};

TEST(GpuPlans, AskForAllKernelsBeforeTheFirstIsTimed) {
  const Graph graph = typed_weighted_graph({.vertices = 20000, .edges = 300000, .hub_edges = 3000, .seed = 3});
  for (const std::string model : {"gcn", "sage"}) {
    SCOPED_TRACE(model);
    const auto device = std::make_shared<FirstLaunch>();
    const auto loader = std::make_shared<GpuCompiler>(device, [](const cuda::Source& s) { return s.text; });
    device->watch(loader.get());
    const auto context = std::make_shared<GpuContext>(loader, std::make_shared<GraphViews>(),
                                                      GpuOptions{.precision = GemmType::tf32, .whole_products = 1});
    const auto backend = make_gpu_backend(context);
    const Blocks blocks = Blocks::full(graph, 3);
    PlanOptions how;
    how.join_products = joined_products(backend->traits());
    Executor executor(make_plan(training_dfg(model, graph, Sampling::none), blocks, how), blocks, backend);
    for (const Node& node : executor.plan().dfg.nodes()) {
      if (node.op == Op::input || node.op == Op::param) executor.bind(node.name, context->allocate(16).get());
    }
    ConstantPool pool;
    executor.allocate(context->allocate(executor.arena_bytes()), pool);
    ASSERT_GE(device->asked(), 0) << "nothing was timed";
    // Kernels of other kinds (losses) are bound after those that are timed, and wait for nothing.
    EXPECT_GE(device->asked() + 4, loader->num_sources());
    EXPECT_GT(loader->num_sources(), 10);
  }
}

struct BatchCase {
  std::string model;
  GemmType precision;
  size_t most;  // largest number of sources that a batch may need
};

void PrintTo(const BatchCase& c, std::ostream* out) { *out << c.model << static_cast<int>(c.precision); }

class GpuBatches : public testing::TestWithParam<BatchCase> {};

TEST_P(GpuBatches, NeedTheKernelsOfTheFirst) {
  const BatchCase& param = GetParam();
  constexpr int64_t kVertices = 6000;
  const Graph graph = typed_weighted_graph({.vertices = kVertices, .edges = 90000, .hub_edges = 3000, .seed = 3});
  const Sampler sampler(graph, {.fanout = {15, 10, 5}, .seed = 4});
  std::vector<NodeId> ids(kVertices);
  for (int64_t i = 0; i < kVertices; ++i) ids[static_cast<size_t>(i)] = static_cast<NodeId>(i);
  BatchOrder order(std::move(ids), 200, 5, true);
  order.begin_epoch(0);

  const Dfg dfg = training_dfg(param.model, graph, Sampling::uniform);
  std::set<std::string> texts;
  std::vector<std::string> fresh;
  const auto loader = std::make_shared<GpuCompiler>(make_null_device(typical_gpu()), [&](const cuda::Source& s) {
    if (texts.insert(s.text).second) fresh.push_back(s.name + "\n" + s.text);
    return s.text;
  });
  const auto context =
      std::make_shared<GpuContext>(loader, std::make_shared<GraphViews>(), GpuOptions{.precision = param.precision});
  const auto backend = make_gpu_backend(context);
  const auto sample = [&](int64_t i) { return sampler.sample(order.batch(i), {0, static_cast<uint64_t>(i)}); };
  const Blocks trial(sample(0).blocks);
  PlanOptions base;
  base.hoist = false;
  base.join_products = joined_products(backend->traits());
  const DeviceTraits traits = backend->traits();
  BlockRunner runner(make_plan(dfg, trial, base, {.device = &traits, .variants = false}), backend);
  std::map<std::string, int64_t> room;
  for (const Node& node : runner.plan().dfg.nodes()) {
    if (node.op == Op::input) room[node.name] = 16;
    if (node.op == Op::param) runner.bind(node.name, context->allocate(16).get());
  }
  for (int64_t i = 0; i < 20; ++i) {
    fresh.clear();
    runner.make_ready(Blocks(sample(i).blocks), {}, room);
    if (i == 0) {
      EXPECT_LE(texts.size(), param.most) << "a cold run compiles more than it did";
      continue;
    }
    for (const std::string& text : fresh) ADD_FAILURE() << "batch " << i << " needs another " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuBatches,
                         testing::Values(BatchCase{"sage", GemmType::tf32, 15}, BatchCase{"gcn", GemmType::tf32, 17},
                                         BatchCase{"gat", GemmType::tf32, 33}, BatchCase{"rgcn", GemmType::tf32, 20},
                                         BatchCase{"sage", GemmType::f32, 15}, BatchCase{"sage", GemmType::bf16, 18}));

}  // namespace
}  // namespace nacre::test

// Samples drawn on a device are those of the host, bit for bit (NACRE_TEST_DEVICE=cuda). The
// sources that draw them compile, which needs the plug-in but no GPU.
#include "nacre/engine/gpu/sampler.h"

#include <gtest/gtest.h>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/device_sampling.h"
#include "nacre/engine/gpu/sink.h"
#include "nacre/kernel/cuda/sample.h"
#include "sample/checks.h"
#include "support/big_graphs.h"
#include "support/random_graphs.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

class GpuSamplerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!testing_gpu()) GTEST_SKIP() << "NACRE_TEST_DEVICE is not cuda";
    DevicePlugin* plugin = device_plugin();
    ASSERT_NE(plugin, nullptr);
    loader_ = GpuCompiler::open(*plugin, plugin->open(0, 0));
  }
  // Draws three batches at once: for some vertices, for none, and for all.
  void expect_same(const Graph& graph, const SampleOptions& options, GpuSampler::GraphMemory memory);

  std::shared_ptr<GpuCompiler> loader_;
};

void GpuSamplerTest::expect_same(const Graph& graph, const SampleOptions& options, GpuSampler::GraphMemory memory) {
  const Sampler sampler(graph, options);
  GpuSampler on_device(loader_, sampler, memory);
  const std::vector<NodeId> all = all_vertices(graph);
  std::vector<NodeId> some;
  for (size_t v = 0; v < all.size(); v += 3) some.insert(some.begin(), all[v]);
  const std::vector<GpuSampler::Batch> batches = {{some, {3, 7}}, {{}, {3, 8}}, {all, {4, 0}}};
  // The second round uses memory that was used before.
  for (int round = 0; round < 2; ++round) {
    const std::vector<DeviceSample> samples = on_device.sample(batches);
    ASSERT_EQ(samples.size(), batches.size());
    for (size_t b = 0; b < batches.size(); ++b) {
      const Sample want = sampler.sample(batches[b].seeds, batches[b].key);
      const Sample got = on_device.to_host(samples[b]);
      EXPECT_EQ(got.num_seeds, want.num_seeds);
      EXPECT_EQ(samples[b].num_edges(), want.num_edges());
      expect_equal(got, want);
      check_sample(graph, got, batches[b].seeds);
    }
  }
}

SampleOptions draw_options(std::vector<int> fanout, bool replace, bool weighted) {
  SampleOptions options;
  options.fanout = std::move(fanout);
  options.replace = replace;
  options.weighted = weighted;
  options.seed = 5;
  return options;
}

TEST_F(GpuSamplerTest, EveryOptionOnEveryGraph) {
  for (const int64_t nodes : {12, 60}) {
    for (const auto& [name, graph] : random_graphs(7, nodes)) {
      for (const bool replace : {false, true}) {
        for (const bool weighted : {false, true}) {
          if (weighted && !graph.weighted()) continue;
          for (const std::vector<int>& fanout : {std::vector{3, 2}, std::vector{5, -1, 1}}) {
            SCOPED_TRACE(name + (replace ? " replace" : "") + (weighted ? " weighted" : ""));
            expect_same(graph, draw_options(fanout, replace, weighted), GpuSampler::GraphMemory::device);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST_F(GpuSamplerTest, LongRowsAndManyDraws) {
  const Graph graph = typed_weighted_graph({.vertices = 300, .edges = 2500, .hub_edges = 900, .seed = 8});
  for (const bool replace : {false, true}) {
    for (const bool weighted : {false, true}) {
      for (const std::vector<int>& fanout : {std::vector{15, 10}, std::vector{32, 33}, std::vector{100}}) {
        SCOPED_TRACE(std::to_string(fanout[0]) + (replace ? " replace" : "") + (weighted ? " weighted" : ""));
        expect_same(graph, draw_options(fanout, replace, weighted), GpuSampler::GraphMemory::host);
        if (HasFailure()) return;
      }
    }
  }
}

// Edges of weight 0 are never drawn, even if a vertex has no others.
TEST_F(GpuSamplerTest, WeightsOfZero) {
  for (const std::vector<float>& weights :
       {std::vector<float>(70, 0.0F), std::vector<float>{0, 1, 0, 2, 0, 3e-38F, 3e38F, 0, 1, 1}}) {
    const Graph graph = star(static_cast<int64_t>(weights.size()), weights);
    for (const bool replace : {false, true}) {
      for (const int fanout : {1, 4, 40}) {
        expect_same(graph, draw_options({fanout, 2}, replace, true), GpuSampler::GraphMemory::device);
      }
    }
  }
}

TEST_F(GpuSamplerTest, WrongSeeds) {
  const Graph graph = star(5);
  const Sampler sampler(graph, draw_options({2}, false, false));
  GpuSampler on_device(loader_, sampler, GpuSampler::GraphMemory::device);
  for (const std::vector<NodeId>& seeds : {std::vector<NodeId>{1, 2, 1}, std::vector<NodeId>{6}}) {
    EXPECT_THROW(on_device.sample(std::vector<GpuSampler::Batch>{{seeds, {}}}), InternalError);
  }
  EXPECT_TRUE(on_device.sample({}).empty());
}

// Batches are drawn ahead for a loader: in order, out of order, of another order, of another epoch.
TEST_F(GpuSamplerTest, BatchesAhead) {
  const Graph graph = typed_weighted_graph({.vertices = 300, .edges = 2500, .hub_edges = 100, .seed = 8});
  const SampleOptions options = draw_options({4, 3}, false, false);
  const Sampler host(graph, options);
  Sampler sampler(graph, options);
  const Array<NodeId> ids(all_vertices(graph));
  const auto sampling = std::make_shared<DeviceSampling>(loader_, host, BatchOrder(ids, 70, options.seed, true),
                                                         DeviceSampling::Options{3, {}});
  sampler.draw_with([sampling] { return sampling->make_batch_sampler(); });
  BatchOrder order(ids, 70, options.seed, true);
  for (const uint64_t epoch : {0, 2}) {
    order.begin_epoch(epoch);
    for (const int64_t b : {0, 1, 3, 2, 4, 4}) {
      const SampleKey key{epoch, static_cast<uint64_t>(b)};
      expect_equal(sampler.sample(order.batch(b), key), host.sample(order.batch(b), key));
    }
  }
  const std::vector<NodeId> others = {5, 250, 7};
  expect_equal(sampler.sample(others, {2, 1}), host.sample(others, {2, 1}));
  EXPECT_EQ(sampler.make_batch_sampler()->hops(), 2);
  const auto less = std::make_shared<DeviceSampling>(loader_, host, BatchOrder(ids, 70, options.seed, true),
                                                     DeviceSampling::Options{2, {.edges = false, .scale = false}});
  const Sample want = host.sample(others, {2, 1});
  Sample got = less->take(others, {2, 1});
  EXPECT_TRUE(got.edges.empty() && got.scale.empty());
  got.edges = want.edges;
  got.scale = want.scale;
  expect_equal(got, want);
}

// What was written and sent stays when the buffer grows, and slots are used again.
TEST_F(GpuSamplerTest, RowsSentToTheDevice) {
  const std::unique_ptr<FeatureSink> sink = make_device_sink(loader_->device(), device_plugin()->open(0, 0));
  for (const int64_t bytes : {5000, 3000, 9000}) {
    for (const int slot : {0, 2}) {
      const auto value = [&](int64_t i) { return static_cast<char>(i * 7 + bytes + slot); };
      auto* to = static_cast<char*>(sink->buffer(slot, 1000));
      for (int64_t i = 0; i < 1000; ++i) to[i] = value(i);
      sink->send(slot, 0, 600);
      to = static_cast<char*>(sink->buffer(slot, bytes));
      for (int64_t i = 1000; i < bytes; ++i) to[i] = value(i);
      sink->send(slot, 600, bytes);
      std::vector<char> got(static_cast<size_t>(bytes));
      loader_->device()->download(got.data(), sink->finish(slot, bytes), bytes);
      for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], value(i)) << i;
    }
  }
  sink->settle(0);
  EXPECT_GT(sink->seconds(), 0);
}

// The context of a batch sends beside the running work, and rows are looked up on the device.
TEST_F(GpuSamplerTest, RowsLookedUpOnTheDevice) {
  const auto root = std::make_shared<GpuContext>(loader_, std::make_shared<GraphViews>(), GpuOptions{});
  for (const int64_t width : {1, 6, 8}) {
    std::vector<float> table(static_cast<size_t>(50 * width));
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
    const std::vector<NodeId> ids = {49, 0, 7, 7, 31};
    GpuContext batch(root);
    const auto there = batch.allocate(static_cast<int64_t>(table.size()) * 4);
    const auto ids_there = batch.allocate(5 * 4);
    const auto out = batch.allocate(5 * width * 4);
    batch.send(there.get(), table.data(), static_cast<int64_t>(table.size()) * 4);
    batch.send(ids_there.get(), ids.data(), 5 * 4);
    batch.arrived();
    root->gather_rows(there.get(), static_cast<const NodeId*>(ids_there.get()), out.get(), {5, width});
    std::vector<float> got(static_cast<size_t>(5 * width));
    loader_->device()->download(got.data(), out.get(), 5 * width * 4);
    for (int64_t i = 0; i < 5 * width; ++i) {
      EXPECT_EQ(got[static_cast<size_t>(i)],
                static_cast<float>(ids[static_cast<size_t>(i / width)] * width + i % width));
    }
  }
}

TEST(GpuSamplerSources, WhatCannotBeDrawn) {
  SampleOptions options = draw_options({5}, false, false);
  EXPECT_EQ(GpuSampler::why_not(options), "");
  options.sampler = "layer";
  EXPECT_NE(GpuSampler::why_not(options), "");
  EXPECT_NE(GpuSampler::why_not(draw_options({5, cuda::kMostDraws + 1}, false, false)), "");
}

TEST(GpuSamplerSources, Compile) {
  std::string why;
  DevicePlugin* plugin = device_plugin(&why);
  if (plugin == nullptr) GTEST_SKIP() << why;
  std::vector<cuda::Source> sources = {cuda::number_seeds(), cuda::take_ends(),   cuda::pick_all(),
                                       cuda::mark_first(),   cuda::number_new(),  cuda::keep_known(),
                                       cuda::relabel(),      cuda::block_rows(),  cuda::take_values(true),
                                       cuda::gather_rows(7), cuda::gather_rows(8)};
  for (const bool replace : {false, true}) {
    sources.push_back(cuda::look_up_rows(5, replace));
    sources.push_back(cuda::count_weighted(5, replace));
    sources.push_back(cuda::pick_uniform(5, replace));
    sources.push_back(cuda::pick_uniform(40, replace));
    sources.push_back(cuda::pick_weighted(cuda::kMostDraws, replace));
  }
  for (const cuda::Source& source : sources) {
    for (const int arch : {80, 90}) {
      EXPECT_NO_THROW(EXPECT_FALSE(plugin->compile(source.text, source.name, arch).empty())) << source.text;
    }
    EXPECT_LE(source.shared_bytes, 48 << 10);
  }
}

}  // namespace
}  // namespace nacre::test

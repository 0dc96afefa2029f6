// A loader over a small graph, with a sink and checks, for tests of batch loaders.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "checked_sink.h"
#include "nacre/schedule/batch_loader.h"
#include "sample/checks.h"
#include "support/random_graphs.h"

namespace nacre::test {

inline constexpr int64_t kWidth = 2048;  // a row has 8 KiB, so a hop is looked up in several chunks
inline constexpr int64_t kBatchSize = 50;

// Returns a graph in which a few hops reach almost everything.
inline const Graph& graph() {
  static const Graph instance = [] {
    for (auto& g : random_graphs(3, 400)) {
      if (g.name.find("weighted") != std::string::npos) return g.graph;
    }
    return random_graphs(3, 400).front().graph;
  }();
  return instance;
}

inline Tensor features_of(int64_t rows, int64_t width) {
  Tensor x(DType::f32, {rows, width});
  for (int64_t i = 0; i < rows * width; ++i) x.data<float>()[i] = static_cast<float>(i % 9973) + 0.5F;
  return x;
}

inline SampleOptions neighbours() {
  SampleOptions options;
  options.fanout = {2, 3, 2};
  options.seed = 11;
  return options;
}

inline Array<NodeId> all_ids(const Graph& g) { return Array<NodeId>(all_vertices(g)); }

struct Bench {
  explicit Bench(const LoaderOptions& how, const SampleOptions& sampling = neighbours(),
                 BatchLoader::Prepare prepare = {})
      : sampler(graph(), sampling), loader(sampler, order(), features(), sink, how, std::move(prepare)) {}

  static BatchOrder order() { return {all_ids(graph()), kBatchSize, 4, true}; }
  static const Tensor& features() {
    static const Tensor x = features_of(graph().num_nodes(), kWidth);
    return x;
  }
  Batch next() {
    sink.over();
    return loader.next();
  }
  // Checks that the batch equals the one that sampling it by itself gives.
  void check(const Batch& batch, uint64_t epoch, int64_t index) {
    ASSERT_EQ(batch.index, index);
    BatchOrder seeds = order();
    seeds.begin_epoch(epoch);
    const Sample want = sampler.sample(sampler.draws_seeds() ? std::span<const NodeId>() : seeds.batch(index),
                                       {epoch, static_cast<uint64_t>(index)});
    expect_equal(batch.sample, want);
    const auto* rows = static_cast<const float*>(batch.features);
    for (int64_t i = 0; i < want.vertices.size(); ++i) {
      const float* row = features().data<float>() + static_cast<int64_t>(want.vertices[i]) * kWidth;
      ASSERT_EQ(std::memcmp(row, rows + i * kWidth, kWidth * sizeof(float)), 0) << "row " << i;
    }
  }
  void check_epoch(uint64_t epoch, int64_t first = 0, int64_t more = 0) {
    sink.over();
    loader.begin_epoch(epoch, first, more);
    for (int64_t b = first; b < loader.num_batches(); ++b) {
      check(next(), epoch, b);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  CheckedSink sink;
  Sampler sampler;
  BatchLoader loader;
};

inline std::vector<LoaderOptions> few_options() {
  return {{.in_flight = 0}, {.in_flight = 1}, {.in_flight = 3}, {3, false, false, false}, {.in_flight = 40}};
}

inline std::string text(const LoaderOptions& o) {
  return "in flight " + std::to_string(o.in_flight) + (o.subtasks ? " subtasks" : "") + (o.relax ? " relax" : "") +
         (o.stream ? " stream" : "");
}

}  // namespace nacre::test

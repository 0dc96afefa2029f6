#include "checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace nacre::test {
namespace {

void check_block(const Graph& graph, const Sample& sample, size_t l) {
  const Graph& block = sample.blocks[l];
  const Array<int64_t>& edges = sample.edges[l];
  ASSERT_EQ(edges.size(), block.num_edges());
  ASSERT_LE(block.num_src(), sample.vertices.size());
  ASSERT_EQ(block.row_ptr()[0], 0);
  // New sources come in the order of their numbers.
  NodeId next = static_cast<NodeId>(block.num_dst());
  for (int64_t v = 0; v < block.num_dst(); ++v) {
    const NodeId original = sample.vertices[v];
    ASSERT_LE(block.row_ptr()[v], block.row_ptr()[v + 1]);
    for (int64_t e = block.row_ptr()[v]; e < block.row_ptr()[v + 1]; ++e) {
      const int64_t position = edges[e];
      ASSERT_GE(position, graph.row_ptr()[original]);
      ASSERT_LT(position, graph.row_ptr()[original + 1]);
      if (e > block.row_ptr()[v]) {
        ASSERT_GE(position, edges[e - 1]);
      }
      const NodeId source = block.col_idx()[e];
      ASSERT_LT(source, block.num_src());
      ASSERT_EQ(sample.vertices[source], graph.col_idx()[position]);
      ASSERT_LE(source, next);
      if (source == next) ++next;
      if (graph.weighted()) {
        ASSERT_EQ(block.edge_weight()[e], graph.edge_weight()[position]);
      }
      if (graph.typed()) {
        ASSERT_EQ(block.edge_type()[e], graph.edge_type()[position]);
      }
    }
  }
  ASSERT_EQ(next, block.num_src());
  ASSERT_EQ(block.num_edge_types(), graph.num_edge_types());
}

template <class T>
void expect_same(const Array<T>& a, const Array<T>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
}

}  // namespace

void check_sample(const Graph& graph, const Sample& sample, std::span<const NodeId> seeds) {
  const size_t layers = sample.blocks.size();
  ASSERT_GT(layers, 0u);
  ASSERT_EQ(sample.edges.size(), layers);
  ASSERT_EQ(sample.scale.size(), layers);
  ASSERT_EQ(sample.num_seeds, static_cast<int64_t>(seeds.size()));
  ASSERT_EQ(sample.blocks[layers - 1].num_dst(), sample.num_seeds);
  ASSERT_EQ(sample.blocks[0].num_src(), sample.vertices.size());
  ASSERT_TRUE(std::equal(seeds.begin(), seeds.end(), sample.vertices.begin()));
  ASSERT_EQ(std::set<NodeId>(sample.vertices.begin(), sample.vertices.end()).size(),
            static_cast<size_t>(sample.vertices.size()));
  int64_t edges = 0;
  for (size_t l = 0; l < layers; ++l) {
    if (l > 0) {
      ASSERT_EQ(sample.blocks[l].num_src(), sample.blocks[l - 1].num_dst());
    }
    check_block(graph, sample, l);
    edges += sample.blocks[l].num_edges();
    if (!sample.scale[l].empty()) {
      ASSERT_EQ(sample.scale[l].size(), sample.edges[l].size());
      for (const float scale : sample.scale[l]) ASSERT_TRUE(std::isfinite(scale) && scale > 0);
    }
  }
  ASSERT_EQ(sample.num_edges(), edges);
}

void expect_equal(const Sample& a, const Sample& b) {
  expect_same(a.vertices, b.vertices);
  expect_same(a.loss_scale, b.loss_scale);
  ASSERT_EQ(a.blocks.size(), b.blocks.size());
  for (size_t l = 0; l < a.blocks.size(); ++l) {
    EXPECT_EQ(a.blocks[l].fingerprint(), b.blocks[l].fingerprint());
    expect_same(a.edges[l], b.edges[l]);
    expect_same(a.scale[l], b.scale[l]);
  }
}

EdgeMeans scale_means(const Sampler& sampler, std::span<const NodeId> seeds, int batches) {
  const auto n = static_cast<size_t>(sampler.graph().num_edges());
  std::vector<double> sum(n, 0), squares(n, 0), now(n, 0);
  double total = 0, total_squares = 0;
  const auto batch_sampler = sampler.make_batch_sampler();
  for (int b = 0; b < batches; ++b) {
    batch_sampler->begin(seeds, {.epoch = 3, .batch = static_cast<uint64_t>(b)});
    for (int hop = 0; hop < batch_sampler->hops(); ++hop) {
      batch_sampler->pick(hop);
      batch_sampler->insert(hop);
      batch_sampler->reindex(hop);
    }
    const Sample sample = batch_sampler->finish();
    std::fill(now.begin(), now.end(), 0);
    const Array<int64_t>& edges = sample.edges.back();
    for (int64_t e = 0; e < edges.size(); ++e) {
      now[static_cast<size_t>(edges[e])] += sample.scale.back().empty() ? 1 : sample.scale.back()[e];
    }
    const double all = std::accumulate(now.begin(), now.end(), 0.0);
    total += all;
    total_squares += all * all;
    for (size_t e = 0; e < n; ++e) {
      sum[e] += now[e];
      squares[e] += now[e] * now[e];
    }
  }
  const auto error = [&](double mean, double square) {
    return std::sqrt(std::max(0.0, square / batches - mean * mean) / batches);
  };
  EdgeMeans means;
  for (size_t e = 0; e < n; ++e) {
    means.mean.push_back(sum[e] / batches);
    means.error.push_back(error(means.mean[e], squares[e]));
  }
  means.total = total / batches;
  means.total_error = error(means.total, total_squares);
  return means;
}

Graph star(int64_t degree, std::vector<float> weights) {
  EdgeList list;
  list.num_nodes = degree + 1;
  for (int64_t v = 1; v <= degree; ++v) {
    list.src.push_back(static_cast<NodeId>(v));
    list.dst.push_back(0);
  }
  list.weight = std::move(weights);
  return build_graph(std::move(list), "star");
}

std::vector<NodeId> all_vertices(const Graph& graph) {
  std::vector<NodeId> ids(static_cast<size_t>(graph.num_nodes()));
  std::iota(ids.begin(), ids.end(), 0u);
  return ids;
}

}  // namespace nacre::test

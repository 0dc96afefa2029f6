#include "nacre/sample/saint.h"

#include <atomic>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/sample/draw.h"
#include "nacre/sample/hop_sampler.h"

namespace nacre {
namespace {

// Finds the edges between the vertices of a set.
template <class Table>
class InducedEdges {
 public:
  explicit InducedEdges(const Graph& graph) : graph_(graph), table_(graph.num_nodes()) {}

  void find(const std::vector<NodeId>& vertices) {
    table_.reset(graph_.num_nodes());
    table_.reserve(static_cast<int64_t>(vertices.size()));
    for (const NodeId v : vertices) table_.insert(v);
    positions.clear();
    sources.clear();
    row_ptr.assign(1, 0);
    const NodeId* col = graph_.col_idx().data();
    for (const NodeId v : vertices) {
      const int64_t begin = graph_.row_ptr()[v], end = graph_.row_ptr()[int64_t{v} + 1];
      constexpr int64_t ahead = 16;
      for (int64_t e = begin; e < end; ++e) {
        if (e + ahead < end) table_.prefetch(col[e + ahead]);
        const NodeId source = table_.find(col[e]);
        if (source >= table_.size()) continue;
        positions.push_back(e);
        sources.push_back(source);
      }
      row_ptr.push_back(static_cast<int64_t>(positions.size()));
    }
  }

  std::vector<int64_t> row_ptr;
  std::vector<int64_t> positions;
  std::vector<NodeId> sources;

 private:
  const Graph& graph_;
  Table table_;
};

template <class Table>
class SaintSampler final : public BatchSampler {
 public:
  SaintSampler(const Graph& graph, const SampleOptions& options, int layers, const SaintShared& shared)
      : graph_(graph), options_(options), layers_(layers), shared_(shared), induced_(graph) {}

  int hops() const override { return layers_; }
  void begin(std::span<const NodeId> seeds, const SampleKey& key) override {
    NACRE_CHECK(seeds.empty(), "GraphSAINT draws its own seeds");
    shared_.draw.vertices(draw::batch_key(options_.seed, key.epoch, key.batch), vertices_);
  }
  void pick(int hop) override {
    if (hop == 0) induced_.find(vertices_);
  }
  void insert(int) override {}  // the vertices are known from the beginning
  std::span<const NodeId> vertices() const override { return vertices_; }

  void reindex(int hop) override {
    if (hop > 0) return;
    GraphArrays arrays;
    arrays.num_src = arrays.num_dst = static_cast<int64_t>(vertices_.size());
    arrays.row_ptr = induced_.row_ptr;
    arrays.col_idx = induced_.sources;
    arrays.num_edge_types = graph_.num_edge_types();
    const auto gather = [&]<class T>(const Array<T>& from) {
      std::vector<T> to;
      to.reserve(induced_.positions.size());
      for (const int64_t position : induced_.positions) to.push_back(from[position]);
      return Array<T>(std::move(to));
    };
    if (graph_.weighted()) arrays.edge_weight = gather(graph_.edge_weight());
    if (graph_.typed()) arrays.edge_type = gather(graph_.edge_type());
    block_ = Graph::trusted(std::move(arrays));
  }

  Sample finish() override {
    std::vector<float> scale, loss_scale;
    scale.reserve(induced_.positions.size());
    for (size_t v = 0; v < vertices_.size(); ++v) {
      for (int64_t e = induced_.row_ptr[v]; e < induced_.row_ptr[v + 1]; ++e) {
        scale.push_back(shared_.counts.edge_scale(vertices_[v], induced_.positions[e]));
      }
      loss_scale.push_back(shared_.counts.loss_scale(vertices_[v]));
    }
    Sample sample;
    sample.num_seeds = static_cast<int64_t>(vertices_.size());
    sample.vertices = vertices_;
    sample.loss_scale = std::move(loss_scale);
    sample.blocks.assign(layers_, block_);
    sample.edges.assign(layers_, induced_.positions);
    sample.scale.assign(layers_, std::move(scale));
    return sample;
  }

 private:
  const Graph& graph_;
  const SampleOptions& options_;
  int layers_;
  const SaintShared& shared_;
  std::vector<NodeId> vertices_;
  InducedEdges<Table> induced_;
  Graph block_;
};

template <class Table>
void count(const Graph& graph, const SampleOptions& options, const SaintDraw& saint, SaintCounts& counts) {
  counts.samples = options.norm_samples;
  counts.vertex.assign(graph.num_nodes(), 0);
  counts.edge.assign(graph.num_edges(), 0);
  parallel_for(options.norm_samples, 8, [&](int64_t begin, int64_t end) {
    InducedEdges<Table> induced(graph);
    std::vector<NodeId> vertices;
    const auto add = [](uint16_t& cell) { std::atomic_ref(cell).fetch_add(1, std::memory_order_relaxed); };
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t epoch = std::numeric_limits<uint64_t>::max();
      saint.vertices(draw::batch_key(options.seed, epoch, static_cast<uint64_t>(i)), vertices);
      induced.find(vertices);
      for (const NodeId v : vertices) add(counts.vertex[v]);
      for (const int64_t e : induced.positions) add(counts.edge[e]);
    }
  });
  double drawn = 0, scaled = 0;
  for (const uint16_t n : counts.vertex) {
    drawn += n;
    scaled += static_cast<double>(n) * static_cast<double>(counts.samples + 1) / (n + 1);
  }
  if (scaled > 0) counts.loss_factor = drawn / scaled;
}

}  // namespace

SaintShared::SaintShared(const Graph& graph, const SampleOptions& options) : draw(graph, options) {
  if (graph.num_nodes() > kMaxDirectNodes) {
    count<HashTable>(graph, options, draw, counts);
  } else {
    count<DirectTable>(graph, options, draw, counts);
  }
}

std::unique_ptr<BatchSampler> make_saint_sampler(const Graph& graph, const SampleOptions& options, int layers,
                                                 const SaintShared& shared) {
  if (graph.num_nodes() > kMaxDirectNodes) {
    return std::make_unique<SaintSampler<HashTable>>(graph, options, layers, shared);
  }
  return std::make_unique<SaintSampler<DirectTable>>(graph, options, layers, shared);
}

namespace {

MakeBatchSampler prepare_saint(const Graph& graph, const SampleOptions& options, int layers) {
  const auto shared = std::make_shared<const SaintShared>(graph, options);
  return [&graph, &options, layers, shared] { return make_saint_sampler(graph, options, layers, *shared); };
}

}  // namespace

std::vector<SamplerInfo> samplers_in_saint() {
  SamplerInfo info{.paper = "GraphSAINT", .draws_subgraph = true, .prepare = prepare_saint};
  std::vector<SamplerInfo> all(3, info);
  all[0].name = "saint-vertex";
  all[0].synonyms = {"saint", "graphsaint", "saint-node"};
  all[1].name = "saint-edge";
  all[2].name = "saint-walk";
  all[2].synonyms = {"saint-rw"};
  return all;
}

}  // namespace nacre

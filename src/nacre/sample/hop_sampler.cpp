#include "nacre/sample/hop_sampler.h"

#include <algorithm>
#include <cstring>

#include "nacre/base/error.h"
#include "nacre/sample/draw.h"

namespace nacre {

template <class Table>
HopSampler<Table>::HopSampler(const Graph& graph, const SampleOptions& options, int hops)
    : graph_(graph), options_(options), hops_(static_cast<size_t>(hops)), table_(graph.num_nodes()) {}

template <class Table>
void HopSampler<Table>::begin(std::span<const NodeId> seeds, const SampleKey& key) {
  key_ = draw::batch_key(options_.seed, key.epoch, key.batch);
  for (Hop& hop : hops_) hop = {};
  table_.reset(graph_.num_nodes());
  count_ = 0;
  num_seeds_ = static_cast<int64_t>(seeds.size());
  make_room(num_seeds_);
  for (const NodeId seed : seeds) {
    NACRE_CHECK(seed < graph_.num_nodes(), "a seed is no vertex of the graph");
    NACRE_CHECK(table_.insert(seed) == count_, "a seed occurs twice");
    vertices_[count_++] = seed;
  }
}

template <class Table>
void HopSampler<Table>::make_room(int64_t more) {
  table_.reserve(std::min(more, graph_.num_nodes() - count_));
  // There is one place more than needed, because insert() writes the next vertex before it knows
  // that the vertex is new.
  const int64_t wanted = std::min(count_ + more, graph_.num_nodes()) + 1;
  if (wanted <= vertices_.size()) return;
  Buffer<NodeId> larger(std::max(wanted, vertices_.size() * 2));
  if (count_ > 0) std::memcpy(larger.data(), vertices_.data(), static_cast<size_t>(count_) * sizeof(NodeId));
  vertices_ = std::move(larger);
}

template <class Table>
void HopSampler<Table>::pick(int hop) {
  Hop& h = hops_[hop];
  h.num_dst = count_;
  h.row_ptr = pool_.take<int64_t>(count_ + 1);
  choose(hop, h);
  h.sources = pool_.take<NodeId>(h.num_edges);
  constexpr int64_t ahead = 48;
  const NodeId* col = graph_.col_idx().data();
  for (int64_t i = 0; i < h.num_edges; ++i) {
    if (i + ahead < h.num_edges) __builtin_prefetch(col + h.edges[i + ahead]);
    h.sources[i] = col[h.edges[i]];
  }
}

template <class Table>
void HopSampler<Table>::insert(int hop) {
  Hop& h = hops_[hop];
  make_room(h.num_edges);
  constexpr int64_t ahead = 32;
  const int64_t n = h.num_edges;
  NodeId* sources = h.sources.data();
  NodeId* vertices = vertices_.data();
  int64_t count = count_;
  for (int64_t i = 0; i < n; ++i) {
    if (i + ahead < n) table_.prefetch(sources[i + ahead]);
    const NodeId vertex = sources[i];
    sources[i] = table_.insert(vertex);
    vertices[count] = vertex;
    count = table_.size();
  }
  count_ = count;
  h.num_src = count_;
}

template <class Table>
void HopSampler<Table>::reindex(int hop) {
  Hop& h = hops_[hop];
  GraphArrays arrays;
  arrays.num_src = h.num_src;
  arrays.num_dst = h.num_dst;
  arrays.row_ptr = std::move(h.row_ptr).freeze(h.num_dst + 1);
  arrays.col_idx = std::move(h.sources).freeze(h.num_edges);
  arrays.num_edge_types = graph_.num_edge_types();
  constexpr int64_t ahead = 48;
  const int64_t n = h.num_edges;
  const auto gather = [&]<class T>(const Array<T>& from) {
    Pooled<T> to = pool_.take<T>(n);
    for (int64_t i = 0; i < n; ++i) {
      if (i + ahead < n) __builtin_prefetch(from.data() + h.edges[i + ahead]);
      to[i] = from[h.edges[i]];
    }
    return std::move(to).freeze(n);
  };
  if (graph_.weighted()) arrays.edge_weight = gather(graph_.edge_weight());
  if (graph_.typed()) arrays.edge_type = gather(graph_.edge_type());
  h.block = Graph::trusted(std::move(arrays));
}

template <class Table>
Sample HopSampler<Table>::finish() {
  Sample sample;
  sample.num_seeds = num_seeds_;
  for (size_t i = hops_.size(); i-- > 0;) {
    Hop& h = hops_[i];
    sample.blocks.push_back(std::move(h.block));
    sample.edges.push_back(std::move(h.edges).freeze(h.num_edges));
    sample.scale.push_back(h.scale.size() == 0 ? Array<float>() : std::move(h.scale).freeze(h.num_edges));
  }
  Pooled<NodeId> vertices = pool_.take<NodeId>(count_);
  if (count_ > 0) std::memcpy(vertices.data(), vertices_.data(), static_cast<size_t>(count_) * sizeof(NodeId));
  sample.vertices = std::move(vertices).freeze(count_);
  return sample;
}

template class HopSampler<DirectTable>;
template class HopSampler<HashTable>;

}  // namespace nacre

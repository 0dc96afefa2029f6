// Layer-wise sampling by importance (LADIES): a hop draws vertices for its whole frontier and keeps
// all edges from them to the frontier.
//
// The importance of a vertex is the sum over its edges into the frontier of squared entries of the
// row-normalised adjacency, (w / the destination's sum of w)², where w is the edge weight with
// `weighted` and 1 otherwise. Vertices are drawn by importance:
//   - Without replacement, by keys as in draw.h, with words 0 and 1 of the candidate's own stream.
//     The edges of a candidate are scaled by one over the chance of a key below the least one that
//     was not taken.
//   - With replacement, by running sums over the candidates in the order in which the rows of the
//     frontier meet them (stream of channel 1, vertex 0). The edges of a candidate are scaled by
//     its number of draws / (fan-out · its share of the importance).
// In both cases the expected scale of every edge is 1. Destinations are always sources of the
// block, but an edge from a destination counts only if the destination was drawn.
#include <vector>

#include "nacre/sample/draw.h"
#include "nacre/sample/hop_sampler.h"
#include "nacre/sample/locality.h"
#include "nacre/sample/pick.h"

namespace nacre {
namespace {

template <class Table>
class LayerSampler final : public HopSampler<Table> {
 public:
  LayerSampler(const Graph& graph, const SampleOptions& options, int hops, const Locality* locality)
      : HopSampler<Table>(graph, options, hops), candidates_(graph.num_nodes()), locality_(locality) {}

 private:
  using HopSampler<Table>::graph_;
  using HopSampler<Table>::options_;
  using HopSampler<Table>::key_;

  void choose(int index, Hop& hop) override {
    const int fanout = options_.fanout[index];
    weigh(hop);
    if (locality_ != nullptr) prefer_near(index);
    scale_.assign(ids_.size(), fanout < 0 ? 1.0f : 0.0f);
    if (fanout >= 0) draw_vertices(static_cast<uint32_t>(index), fanout);
    keep_edges(hop, fanout >= 0);
  }

  // Numbers the sources of the frontier's edges and adds up their importance.
  void weigh(const Hop& hop) {
    candidates_.reset(graph_.num_nodes());
    ids_.clear();
    importance_.clear();
    of_edge_.clear();
    const NodeId* col = graph_.col_idx().data();
    for (int64_t i = 0; i < hop.num_dst; ++i) {
      const int64_t begin = row_begin(i), end = row_end(i);
      double sum = options_.weighted ? 0 : static_cast<double>(end - begin);
      if (options_.weighted) {
        for (int64_t e = begin; e < end; ++e) sum += graph_.edge_weight()[e];
      }
      candidates_.reserve(end - begin);
      for (int64_t e = begin; e < end; ++e) candidates_.prefetch(col[e]);
      for (int64_t e = begin; e < end; ++e) {
        const NodeId candidate = candidates_.insert(col[e]);
        if (candidate == ids_.size()) {
          ids_.push_back(col[e]);
          importance_.push_back(0);
        }
        of_edge_.push_back(candidate);
        const double share = sum > 0 ? (options_.weighted ? graph_.edge_weight()[e] : 1.0) / sum : 0;
        importance_[candidate] += share * share;
      }
    }
  }

  // Multiplies the importance of the candidates that the hop prefers by the scale of the locality.
  void prefer_near(int index) {
    const double scale = locality_->scale();
    const std::span<const uint8_t> preferred = locality_->preferred(index);
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (preferred[ids_[i]] != 0) importance_[i] *= scale;
    }
  }

  void draw_vertices(uint32_t index, int fanout) {
    if (options_.replace) {
      const draw::Stream stream{key_, draw::place(1, index), 0};
      for (const Pick& pick : picker_.merged(stream, importance_, fanout)) scale_[pick.index] = pick.scale;
      return;
    }
    keys_.resize(ids_.size());
    for (size_t i = 0; i < ids_.size(); ++i) {
      const PhiloxBlock words = draw::Stream{key_, draw::place(0, index), ids_[i]}.four(0);
      keys_[i] = draw::exponential_key(words[0], words[1], importance_[i]);
    }
    for (const Pick& pick : picker_.least(keys_, importance_, fanout)) scale_[pick.index] = pick.scale;
  }

  void keep_edges(Hop& hop, bool scaled) {
    int64_t kept = 0;
    for (const NodeId candidate : of_edge_) kept += static_cast<int64_t>(scale_[candidate] > 0);
    hop.edges = this->pool_.template take<int64_t>(kept);
    if (scaled) hop.scale = this->pool_.template take<float>(kept);
    hop.num_edges = kept;
    hop.row_ptr[0] = 0;
    int64_t at = 0;
    const NodeId* candidate = of_edge_.data();
    for (int64_t i = 0; i < hop.num_dst; ++i) {
      for (int64_t e = row_begin(i); e < row_end(i); ++e) {
        const float scale = scale_[*candidate++];
        if (!(scale > 0)) continue;
        if (scaled) hop.scale[at] = scale;
        hop.edges[at++] = e;
      }
      hop.row_ptr[i + 1] = at;
    }
  }

  int64_t row_begin(int64_t i) const { return graph_.row_ptr()[this->vertices()[i]]; }
  int64_t row_end(int64_t i) const { return graph_.row_ptr()[int64_t{this->vertices()[i]} + 1]; }

  Table candidates_;
  std::vector<NodeId> ids_;  // ids of the candidates
  std::vector<double> importance_;
  std::vector<float> scale_;  // 0: the candidate was not drawn
  std::vector<double> keys_;
  std::vector<NodeId> of_edge_;  // candidate at the source of every edge into the frontier
  Picker picker_;
  const Locality* locality_;  // null: no vertex is preferred
};

}  // namespace

std::unique_ptr<BatchSampler> make_layer_sampler(const Graph& graph, const SampleOptions& options, int hops,
                                                 int64_t max_direct, const Locality* locality) {
  if (graph.num_nodes() > max_direct) {
    return std::make_unique<LayerSampler<HashTable>>(graph, options, hops, locality);
  }
  return std::make_unique<LayerSampler<DirectTable>>(graph, options, hops, locality);
}

namespace {

MakeBatchSampler prepare_layer(const Graph& graph, const SampleOptions& options, int hops) {
  return [&graph, &options, hops] { return make_layer_sampler(graph, options, hops); };
}

}  // namespace

std::vector<SamplerInfo> samplers_in_layer() {
  return {{.name = "layer",
           .paper = "LADIES",
           .synonyms = {"ladies", "layerwise"},
           .usual_fanout = 512,
           .prepare = prepare_layer}};
}

}  // namespace nacre

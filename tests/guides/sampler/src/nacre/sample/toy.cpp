// A toy: every vertex takes the first of its in-edges, so nothing is drawn.
#include <algorithm>

#include "nacre/sample/hop_sampler.h"

namespace nacre {
namespace {

class ToySampler final : public HopSampler<HashTable> {
 public:
  using HopSampler<HashTable>::HopSampler;

 private:
  void choose(int index, Hop& hop) override {
    const int64_t fanout = options_.fanout[static_cast<size_t>(index)];
    int64_t most = 0;
    for (const NodeId v : vertices()) most += taken(v, fanout);
    hop.edges = pool_.take<int64_t>(most);
    hop.scale = pool_.take<float>(most);
    hop.row_ptr[0] = 0;
    for (int64_t i = 0; i < hop.num_dst; ++i) {
      const NodeId v = vertices()[static_cast<size_t>(i)];
      const int64_t count = taken(v, fanout);
      for (int64_t k = 0; k < count; ++k) {
        hop.edges[hop.num_edges] = graph_.row_ptr()[v] + k;
        hop.scale[hop.num_edges++] = static_cast<float>(graph_.in_degree(v)) / static_cast<float>(count);
      }
      hop.row_ptr[i + 1] = hop.num_edges;
    }
  }

  int64_t taken(NodeId v, int64_t fanout) const {
    return fanout < 0 ? graph_.in_degree(v) : std::min(graph_.in_degree(v), fanout);
  }
};

MakeBatchSampler prepare(const Graph& graph, const SampleOptions& options, int hops) {
  return [&graph, &options, hops] { return std::make_unique<ToySampler>(graph, options, hops); };
}

}  // namespace

std::vector<SamplerInfo> samplers_in_toy() {
  return {{.name = "toy", .synonyms = {"first"}, .usual_fanout = 3, .prepare = prepare}};
}

}  // namespace nacre

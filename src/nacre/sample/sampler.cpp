#include <utility>

#include "nacre/sample/hop_sampler.h"
#include "nacre/sample/options.h"
#include "nacre/sample/saint.h"
#include "nacre/sample/sample.h"

namespace nacre {

int64_t Sample::num_edges() const {
  int64_t sum = 0;
  for (const Graph& block : blocks) sum += block.num_edges();
  return sum;
}

struct Sampler::State {
  Graph graph;
  SampleOptions options;
  int layers = 0;
  std::unique_ptr<SaintShared> saint;  // refers to graph and options
  std::function<std::unique_ptr<BatchSampler>()> make;
};

Sampler::Sampler(Graph graph, SampleOptions options) : state_(std::make_unique<State>()) {
  state_->layers = check_options(graph, options);
  state_->graph = std::move(graph);
  state_->options = std::move(options);
  if (state_->options.kind >= SamplerKind::saint_vertex) {
    state_->saint = std::make_unique<SaintShared>(state_->graph, state_->options);
  }
}

Sampler::~Sampler() = default;
const Graph& Sampler::graph() const { return state_->graph; }
const SampleOptions& Sampler::options() const { return state_->options; }
int Sampler::layers() const { return state_->layers; }

void Sampler::draw_with(std::function<std::unique_ptr<BatchSampler>()> make) { state_->make = std::move(make); }

std::unique_ptr<BatchSampler> Sampler::make_batch_sampler() const {
  const State& s = *state_;
  if (s.make) return s.make();
  if (s.saint) return make_saint_sampler(s.graph, s.options, s.layers, *s.saint);
  if (s.options.kind == SamplerKind::layer) return make_layer_sampler(s.graph, s.options, s.layers);
  return make_neighbor_sampler(s.graph, s.options, s.layers);
}

namespace {

Sample run(BatchSampler& sampler, std::span<const NodeId> seeds, const SampleKey& key) {
  sampler.begin(seeds, key);
  for (int hop = 0; hop < sampler.hops(); ++hop) {
    sampler.pick(hop);
    sampler.insert(hop);
    sampler.reindex(hop);
  }
  return sampler.finish();
}

}  // namespace

Sample Sampler::sample(std::span<const NodeId> seeds, const SampleKey& key) const {
  return run(*make_batch_sampler(), seeds, key);
}

Sample full_neighbours(const Graph& graph, std::span<const NodeId> destinations) {
  SampleOptions options;
  options.fanout = {-1};
  return run(*make_neighbor_sampler(graph, options, 1), destinations, {});
}

}  // namespace nacre

#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/sample/hop_sampler.h"
#include "nacre/sample/options.h"
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
  // `make` and `second` are functions that make samplers, which refer to `graph` and `options`. If
  // a device draws the batches and the host draws beside it, `second` makes the samplers of the
  // host.
  MakeBatchSampler make, second;
};

const std::vector<SamplerInfo>& samplers() {
  static const std::vector<SamplerInfo> all = all_samplers();
  return all;
}

const SamplerInfo& sampler_info(const std::string& name) {
  std::vector<std::string> names;
  for (const SamplerInfo& info : samplers()) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  throw UserError("--sampler", "unknown sampler '" + name + "'", suggest(name, names));
}

Sampler::Sampler(Graph graph, SampleOptions options) : state_(std::make_unique<State>()) {
  state_->layers = check_options(graph, options);
  state_->graph = std::move(graph);
  state_->options = std::move(options);
  state_->make = sampler_info(state_->options.sampler).prepare(state_->graph, state_->options, state_->layers);
}

Sampler::~Sampler() = default;
const Graph& Sampler::graph() const { return state_->graph; }
const SampleOptions& Sampler::options() const { return state_->options; }
int Sampler::layers() const { return state_->layers; }

void Sampler::draw_with(MakeBatchSampler make, bool beside_host) {
  const SamplerInfo& info = sampler_info(state_->options.sampler);
  state_->make = std::move(make);
  state_->second = beside_host ? info.prepare(state_->graph, state_->options, state_->layers) : nullptr;
}

std::unique_ptr<BatchSampler> Sampler::make_second_sampler() const {
  return state_->second ? state_->second() : nullptr;
}

std::unique_ptr<BatchSampler> Sampler::make_batch_sampler() const { return state_->make(); }

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

#include "nacre/place/accesses.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/place/reach.h"
#include "nacre/sample/options.h"

namespace nacre {
namespace {

// Training counts epochs from 0, and trial batches take the highest number. Batches that are drawn
// here belong to epochs between the two.
constexpr uint64_t kPresampledEpoch = UINT64_C(1) << 62;

// From this number of full batches in an epoch on, the probabilities of a shorter last batch are
// derived from those of a full batch instead of being computed.
constexpr int64_t kManyBatches = 32;

// Returns the probabilities that a batch of `size` seeds reads the rows.
std::vector<float> reach_of_batch(const AccessRequest& request, int hops, int64_t size) {
  std::vector<float> seed(static_cast<size_t>(request.graph->num_nodes()), 0.0f);
  const double chance = static_cast<double>(size) / static_cast<double>(request.train.size());
  for (const NodeId v : request.train) seed[v] = static_cast<float>(chance);
  return reach_probabilities(*request.graph, request.sampling, hops, seed);
}

// Returns whether shortened() may derive the probabilities of a short last batch from those of a
// full one. It may for the sampler "neighbor", because there every vertex draws for itself, so the
// seeds miss a row independently of each other.
bool short_batch_follows(const SampleOptions& options, int64_t full_batches) {
  return options.sampler == "neighbor" && full_batches >= kManyBatches;
}

// Returns the probabilities that a batch of `rest` seeds reads the rows, derived from `reads`,
// which are those of a batch of `size` seeds.
std::vector<float> shortened(const std::vector<float>& reads, int64_t rest, int64_t size) {
  const double power = static_cast<double>(rest) / static_cast<double>(size);
  std::vector<float> result(reads.size());
  parallel_for(static_cast<int64_t>(reads.size()), 1 << 14, [&](int64_t begin, int64_t end) {
    for (auto v = static_cast<size_t>(begin); v < static_cast<size_t>(end); ++v) {
      result[v] = reads[v] < 1 ? static_cast<float>(-std::expm1(power * std::log1p(-double{reads[v]}))) : 1.0f;
    }
  });
  return result;
}

}  // namespace

int64_t batches_of_epoch(const AccessRequest& request) {
  const bool subgraphs = sampler_info(request.sampling.sampler).draws_subgraph;
  const int64_t seeds = subgraphs ? request.graph->num_nodes() : static_cast<int64_t>(request.train.size());
  return (seeds + request.batch_size - 1) / request.batch_size;
}

std::vector<float> presampled_accesses(const AccessRequest& request, int64_t batches) {
  if (request.batch_size < 1) throw UserError("--batch-size", "must be at least 1");
  const Graph& graph = *request.graph;
  const Sampler sampler(graph, request.sampling);
  const int64_t per_epoch = batches_of_epoch(request);
  std::vector<uint32_t> counts(static_cast<size_t>(graph.num_nodes()), 0);
  std::vector<float> reads(counts.size(), 0.0f);
  if (per_epoch == 0 || batches < 1) return reads;
  const std::vector<NodeId> train(request.train.begin(), request.train.end());
  BatchOrder order(Array<NodeId>(train), request.batch_size, request.sampling.seed, true);
  for (int64_t first = 0; first < batches; first += per_epoch) {
    const uint64_t epoch = kPresampledEpoch + static_cast<uint64_t>(first / per_epoch);
    order.begin_epoch(epoch);
    parallel_for(std::min(per_epoch, batches - first), 4, [&](int64_t begin, int64_t end) {
      const auto drawer = sampler.make_batch_sampler();
      for (int64_t batch = begin; batch < end; ++batch) {
        drawer->begin(sampler.draws_seeds() ? std::span<const NodeId>() : order.batch(batch),
                      {epoch, static_cast<uint64_t>(batch)});
        for (int hop = 0; hop < drawer->hops(); ++hop) {
          drawer->pick(hop);
          drawer->insert(hop);
        }
        for (const NodeId v : drawer->vertices()) {
          std::atomic_ref(counts[v]).fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  const double scale = static_cast<double>(per_epoch) / static_cast<double>(batches);
  for (size_t v = 0; v < reads.size(); ++v) reads[v] = static_cast<float>(scale * counts[v]);
  return reads;
}

std::vector<float> access_probabilities(const AccessRequest& request) {
  if (request.batch_size < 1) throw UserError("--batch-size", "must be at least 1");
  const Graph& graph = *request.graph;
  const int64_t batches = batches_of_epoch(request);
  const int hops = check_options(graph, request.sampling);
  // Graphs with 2^32 edges or more cannot be transposed (graph.h), so their batches are drawn and
  // counted.
  if (graph.num_edges() > INT64_C(0xFFFFFFFF)) return presampled_accesses(request, batches);
  if (sampler_info(request.sampling.sampler).draws_subgraph) {
    std::vector<float> reads = subgraph_probabilities(graph, request.sampling);
    for (float& each : reads) each *= static_cast<float>(batches);
    return reads;
  }
  const auto train = static_cast<int64_t>(request.train.size());
  if (train == 0) return std::vector<float>(static_cast<size_t>(graph.num_nodes()), 0.0f);
  const int64_t size = std::min(request.batch_size, train);
  const int64_t full = train / size, rest = train % size;
  std::vector<float> reads = reach_of_batch(request, hops, size);
  const std::vector<float> last = rest == 0                                     ? std::vector<float>(reads.size(), 0.0f)
                                  : short_batch_follows(request.sampling, full) ? shortened(reads, rest, size)
                                                                                : reach_of_batch(request, hops, rest);
  for (size_t v = 0; v < reads.size(); ++v) reads[v] = reads[v] * static_cast<float>(full) + last[v];
  return reads;
}

}  // namespace nacre

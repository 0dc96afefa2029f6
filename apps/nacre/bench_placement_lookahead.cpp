// Computes the line of nacre bench placement for --cache lookahead. It draws the batches of each
// simulated device and plans their rows as a run does it, and counts the rows that have no seat in
// the device when a batch reads them.
#include <numeric>

#include "bench_placement.h"
#include "nacre/base/log.h"
#include "nacre/tier/cached_batches.h"

namespace nacre::cli {
namespace {

// Returns, for each batch of a device, the vertices whose rows it reads. `part` says which batches
// belong to the device.
std::vector<std::vector<NodeId>> batches_of_device(const AccessRequest& accesses, const Sampler& sampler,
                                                   const BatchPart& part, int64_t epochs) {
  std::vector<NodeId> seeds(accesses.train.begin(), accesses.train.end());
  if (sampler.draws_seeds()) {
    seeds.resize(static_cast<size_t>(accesses.graph->num_nodes()));
    std::iota(seeds.begin(), seeds.end(), NodeId{0});
  }
  BatchOrder order(seeds, accesses.batch_size, accesses.sampling.seed, true, part);
  const auto drawer = sampler.make_batch_sampler();
  std::vector<std::vector<NodeId>> batches;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    order.begin_epoch(static_cast<uint64_t>(epoch));
    for (int64_t i = 0; i < order.num_batches(); ++i) {
      drawer->begin(sampler.draws_seeds() ? std::span<const NodeId>() : order.batch(i),
                    {static_cast<uint64_t>(epoch), static_cast<uint64_t>(order.number(i))});
      for (int hop = 0; hop < drawer->hops(); ++hop) {
        drawer->pick(hop);
        drawer->insert(hop);
      }
      batches.emplace_back(drawer->vertices().begin(), drawer->vertices().end());
    }
  }
  return batches;
}

}  // namespace

JudgedPlacement judge_look_ahead(const PlacementRequest& request, int64_t epochs) {
  const Sampler sampler(*request.accesses.graph, request.accesses.sampling);
  const auto devices = static_cast<int64_t>(request.device_rows.size());
  PlacementRequest alone = request;
  alone.method = placement_methods().front().name;
  alone.device_rows.resize(1);
  alone.group.clear();
  const FeaturePlacement first = place_features(alone);
  const auto contents = first.device_rows.front().span();
  JudgedPlacement judged{"lookahead", first.seconds};
  const RowClasses classes = cache_classes(request.reads, contents);
  for (int64_t d = 0; d < devices; ++d) {
    const auto batches = batches_of_device(request.accesses, sampler, {devices, d, 1}, epochs);
    int64_t rows = 0, hits = 0;
    for (const auto& batch : batches) rows += static_cast<int64_t>(batch.size());
    const auto count = static_cast<int64_t>(batches.size());
    const auto seats = static_cast<int64_t>(contents.size());
    const int64_t window = CachedBatches::useful_window(seats, rows / std::max<int64_t>(1, count));
    const double start = now_seconds();
    CachePlanner planner(request.num_vertices, seats, contents, 1, classes);
    for (int64_t planned = 0, added = 0; planned < count; ++planned) {
      for (; added < std::min(count, planned + window); ++added) planner.add(batches[static_cast<size_t>(added)]);
      hits += planner.plan().hits;
    }
    judged.seconds += now_seconds() - start;
    const auto of_epoch = [&](int64_t n) { return static_cast<double>(n) / static_cast<double>(epochs); };
    judged.reads.push_back({.own = of_epoch(hits), .host = of_epoch(rows - hits)});
  }
  judged.cost = largest_cost(judged.reads, request.costs);
  return judged;
}

}  // namespace nacre::cli

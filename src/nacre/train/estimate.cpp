#include "nacre/train/estimate.h"

#include <algorithm>

#include "nacre/base/philox.h"
#include "nacre/engine/executor.h"
#include "nacre/train/bill_parts.h"
#include "nacre/train/disk_tier.h"
#include "nacre/train/planner.h"

namespace nacre {
namespace {

constexpr int64_t kFewEdges = 200'000;
constexpr int64_t kFewNodes = 16'384;

// Returns a random graph of `nodes` nodes with the mean degree of `counts`.
Graph small_graph(const GraphCounts& counts, int edge_types, int64_t nodes) {
  const double degree = static_cast<double>(counts.edges) / static_cast<double>(std::max<int64_t>(1, counts.nodes));
  const auto edges = static_cast<size_t>(degree * static_cast<double>(nodes));
  EdgeList list;
  list.num_nodes = nodes;
  list.num_types = std::max(1, edge_types);
  for (size_t i = 0; i < edges; ++i) {
    const PhiloxBlock drawn = philox(1, 0, i);
    list.src.push_back(static_cast<NodeId>(drawn[0] % static_cast<uint64_t>(nodes)));
    list.dst.push_back(static_cast<NodeId>(drawn[1] % static_cast<uint64_t>(nodes)));
    if (counts.weighted) list.weight.push_back(1.0F);
    if (counts.typed) list.type.push_back(static_cast<uint16_t>(drawn[2] % static_cast<uint32_t>(list.num_types)));
  }
  return build_graph(std::move(list), "an estimate");
}

struct StepMemory {
  double forms = 0, constants = 0, arena = 0;
};

StepMemory step_on(const Dfg& dfg, const Graph& graph) {
  const Blocks blocks = Blocks::full(graph, std::max(1, dfg.num_layers()));
  const auto backend = make_cpu_backend(std::make_shared<GraphViews>());
  PlanRequest request;
  request.plan = "off";
  request.deterministic = true;
  const Executor executor(plan_training(dfg, blocks, backend, request, {}).plan, blocks, backend);
  return {static_cast<double>(backend->graph_bytes()), static_cast<double>(executor.constant_bytes({})),
          static_cast<double>(executor.arena_bytes())};
}

// Returns a size for the whole graph, extrapolated from its values for the two small graphs. A size
// is a constant part and a part in proportion to the number of nodes. The number of nodes by which
// the whole graph exceeds the smaller of the two is `steps` times that by which the larger one
// does.
int64_t scaled(double small, double large, double steps) {
  return static_cast<int64_t>(std::max(0.0, small + (large - small) * steps));
}

void add_step(const ModelOptions& options, const GraphCounts& counts, std::vector<MemoryItem>& items) {
  Dfg dfg = build_model(options);
  differentiate(dfg);
  const int64_t by_edges = kFewEdges * counts.nodes / std::max<int64_t>(1, counts.edges);
  const int64_t nodes = std::max<int64_t>(2, std::min({counts.nodes, kFewNodes, std::max<int64_t>(256, by_edges)}));
  const int64_t half = nodes / 2;
  const StepMemory small = step_on(dfg, small_graph(counts, options.num_edge_types, half));
  const StepMemory large = step_on(dfg, small_graph(counts, options.num_edge_types, nodes));
  const double steps = static_cast<double>(counts.nodes - half) / static_cast<double>(nodes - half);
  items.push_back({"edges by source, and work lists", scaled(small.forms, large.forms, steps)});
  items.push_back({"values computed once", scaled(small.constants, large.constants, steps)});
  items.push_back({"arena (activations, gradients, work)", scaled(small.arena, large.arena, steps)});
}

// Adds the memory of batches in which every node draws as many neighbours as it may.
void add_batches(const RunConfig& config, const DataSizes& sizes, std::vector<MemoryItem>& items) {
  double nodes = static_cast<double>(config.batch_size), hop = nodes;
  for (int l = 0; l < config.model.layers; ++l) {
    const auto layer = static_cast<size_t>(l);
    const int fanout = layer < config.sampling.fanout.size() ? config.sampling.fanout[layer] : 10;
    hop *= fanout < 0 ? static_cast<double>(sizes.graph.nodes) : fanout;
    nodes += hop;
  }
  const double rows = std::min(nodes, static_cast<double>(sizes.graph.nodes)) * static_cast<double>(sizes.features) * 4;
  const int64_t ahead = config.loader.in_flight < 0 ? LoaderOptions{}.in_flight : config.loader.in_flight;
  const int64_t batches = ahead + 1 + (runs_on_gpu(config) ? 0 : config.staleness);
  if (const int64_t on_disk = bytes_on_disk(config, sizes.feature_bytes); on_disk > 0)
    items.push_back({"feature rows in memory, the others on disk", config.host_budget});
  const double bytes = rows * 1.125 * static_cast<double>(batches);
  items.push_back({"batches (features)", static_cast<int64_t>(std::min(kMostBytes, bytes))});
}

}  // namespace

Bill estimate_bill(const RunConfig& config, const DataSizes& sizes) {
  Bill bill = bill_before_reading(config, sizes, {});
  if (sizes.heterogeneous || sizes.features == 0) return bill;
  const ModelInfo& model = model_info(config.model.model);
  GraphCounts counts = sizes.graph;
  if (model.needs_types) counts.typed = true;
  if (model.needs_self_loops) counts.edges += counts.nodes;
  const auto training_phase = std::find_if(bill.phases.begin(), bill.phases.end(),
                                           [](const MemoryPhase& phase) { return phase.name == "training"; });
  std::vector<MemoryItem>& training = training_phase->items;
  if (config.mode == "minibatch") {
    add_batches(config, sizes, training);
    return bill;
  }
  // add_step() counts the edges by source among the views of the graph, so their own items are
  // removed.
  std::erase_if(training, [](const MemoryItem& item) { return item.what.starts_with("edges by source"); });
  add_step(model_for(config, sizes), counts, training);
  return bill;
}

}  // namespace nacre

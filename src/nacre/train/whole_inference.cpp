#include "nacre/train/whole_inference.h"

#include <fmt/format.h>

#include "nacre/base/trace.h"
#include "nacre/plan/search.h"

namespace nacre {

WholeInference::WholeInference(const RunData& run, Learner& learner, const RunDevice& device, bool embeddings)
    : run_(run), learner_(learner), device_(device) {
  ModelOptions options = run.config.model;
  options.training = false;
  options.embeddings = embeddings;
  options.loss = "none";
  const Dfg dfg = build_model(options);
  const Blocks blocks = Blocks::full(run.dataset.graph, std::max(1, dfg.num_layers()));
  const int64_t before = device.backend()->graph_bytes();
  const DeviceTraits traits = device.backend()->traits();
  const PlanOptions how = search_plan(dfg, blocks, {}, {}).options;
  executor_ = std::make_unique<Executor>(make_plan(dfg, blocks, how, {.device = &traits}), blocks, device.backend());
  forms_ = device.backend()->graph_bytes() - before;
}

int64_t WholeInference::bytes() const {
  // Kernels on the host may need the destination of every edge. The bytes of these destinations are
  // counted if the graph does not have them yet.
  const Graph& graph = run_.dataset.graph;
  const int64_t ends = !device_.on_host() || graph.has_out() ? 0 : graph.num_edges() * 4;
  return forms_ + ends + executor_->constant_bytes(constants_) + executor_->arena_bytes();
}

void WholeInference::start() {
  for (const Parameter& p : learner_.list()) executor_->bind(p.name, learner_.place(p));
  for (const FeatureLeaf& x : run_.leaves) executor_->bind(x.name, learner_.leaf(x.name, x.values));
  const Array<float>& weight = run_.dataset.graph.edge_weight();
  for (int l = 0; l < executor_->blocks().num_layers(); ++l) {
    executor_->bind(fmt::format("edge_weight.{}", l), learner_.leaf("edge_weight", weight.data(), weight.size() * 4));
  }
  executor_->allocate(device_.backend()->allocate(executor_->arena_bytes()), constants_);
  executor_->prepare();
}

void WholeInference::run() {
  const TraceSpan span("evaluate", "whole graph");
  executor_->run({run_.config.seed, 0});
}

}  // namespace nacre

#include "nacre/train/rank_planning.h"

namespace nacre {
Dfg rank_model(const RunData& run, bool training, bool embeddings) {
  ModelOptions options = run.config.model;
  options.sampling = Sampling::blocks;
  options.training = training;
  options.embeddings = embeddings;
  options.loss = training ? run.training_loss() : "none";
  Dfg dfg = build_model(options);
  if (training) differentiate(dfg);
  return dfg;
}

PlanAnswer plan_for_ranks(const Dfg& dfg, const RankPart& part, const std::shared_ptr<Backend>& backend,
                          const RunConfig& config, const std::string& resumed_plan) {
  PlanRequest request = plan_request(config, config.epochs, resumed_plan);
  // On several devices, --plan auto makes plans by rules.
  if (request.plan == "auto") request.deterministic = true;
  if (!config.ranks.overlap) request.disabled_passes.insert("choose_early_rows");
  return plan_training(dfg, part.blocks, backend, request, [](Executor&) {});
}

}  // namespace nacre

// From what a user asks for (--plan) to a plan.
//   auto           searched: predicted by this machine's profile, timed on the graph, kept in the plan cache
//   off            by rules alone: least counted work on an ordinary machine, nothing measured, the same anywhere
//   vertex, edge   the model as written, its edges cut by destination, or one by one
//   tensor         the model as written, every operation by itself
//   TABLE          a partition table (gtask/table.h) for every kernel over edges that can follow it
//   FILE           a plan file
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "nacre/engine/executor.h"
#include "nacre/plan/drop.h"
#include "nacre/train/config.h"

namespace nacre {

struct PlanRequest {
  std::string plan = "auto";
  bool deterministic = false;  // auto by rules, so that the machine's speed does not show in the rounding
  int epochs = 200;
  int64_t memory_limit = 0;  // bytes; 0 = what the machine has free
  bool use_cache = true;
  bool recompute = true;  // auto drops values where that saves much memory for little time; always if it must
  std::set<std::string> disabled_passes;  // left out of every plan but those of files
  std::string resumed_plan;               // plan file of the run that is continued
  // Of the predicted time of the epochs, for timing kernels; preparing them takes about half as much again.
  double budget_share = 0.01;
};

// As a run's settings ask for; `epochs` counts steps.
PlanRequest plan_request(const RunConfig& config, int64_t epochs, const std::string& resumed_plan);

struct PlanAnswer {
  Plan plan;
  SearchResult search;           // empty unless searched now
  std::string source;            // searched, cached, rules, file, given
  std::vector<Dropped> dropped;  // what the backward pass computes again
};

// `bind` gives an executor its leaves, for timing.
PlanAnswer plan_training(const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend,
                         const PlanRequest& request, const std::function<void(Executor&)>& bind);

// A batch that plans are tried on. `bind` as above.
struct TrialBlocks {
  Blocks blocks;
  std::function<void(Executor&)> bind;
};
// A plan for many batches like `trials`: it computes nothing once, and kernels are timed on all of them. `epochs` of
// the request counts steps.
PlanAnswer plan_batches(const Dfg& dfg, const std::vector<TrialBlocks>& trials, const std::shared_ptr<Backend>& backend,
                        const PlanRequest& request);

// Drops values of the forward pass until a step's values take `bytes` less than now, or all that can be. False when
// nothing can be dropped.
bool shrink_plan(PlanAnswer& answer, const Dfg& dfg, const Blocks& blocks, const Backend& backend, int64_t bytes);

// Returns the part of a model's DFG that a training step computes: gradients and the loss, without scores. Plans are
// made for this part.
Dfg without_scores(const Dfg& dfg);

// What --plan may say besides a file; throws UserError when `text` is a table that means nothing.
bool is_plan_name(const std::string& text);
// Throws UserError when --plan is neither that nor a file, or --recompute means nothing, so that a program can ask
// before it reads the data.
void check_plan(const RunConfig& config);

}  // namespace nacre

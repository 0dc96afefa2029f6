// This file makes the plans of runs. It joins the planner's policy (plan/policy.h) to the engine,
// which times plans, and to the run's settings.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"
#include "nacre/plan/policy.h"
#include "nacre/train/config.h"

namespace nacre {

// Returns the request for a plan that the settings of a run make. `epochs` is the number of steps.
PlanRequest plan_request(const RunConfig& config, int64_t epochs, const std::string& resumed_plan);

// Returns a plan for training on a graph that is the same in every step. `bind` gives an executor
// its leaves, for timing.
PlanAnswer plan_training(const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend,
                         const PlanRequest& request, const std::function<void(Executor&)>& bind);

// Holds a batch that plans are timed on. `bind` gives an executor its leaves.
struct TrialBlocks {
  Blocks blocks;
  std::function<void(Executor&)> bind;
};
// Returns one plan for many batches like `trials`. The plan computes nothing once, and its kernels
// are timed on all trials. PlanRequest::epochs must be the number of steps.
PlanAnswer plan_batches(const Dfg& dfg, const std::vector<TrialBlocks>& trials, const std::shared_ptr<Backend>& backend,
                        const PlanRequest& request);

// Drops values of the forward pass until a step's values take `bytes` less than now, or until no
// more can be dropped (plan/policy.h). Returns false if nothing can be dropped.
bool shrink_plan(PlanAnswer& answer, const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend,
                 int64_t bytes);

// Throws a UserError if --plan is neither the name of a plan nor a file, or if --recompute has an
// unknown value. A program can call this before it reads the data.
void check_plan(const RunConfig& config);

}  // namespace nacre

// Plans for runs: joins the planner's policy (plan/policy.h) to the engine, which times plans, and
// to the run's settings.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"
#include "nacre/plan/policy.h"
#include "nacre/train/config.h"

namespace nacre {

// Returns what the settings of a run ask for. `epochs` counts steps.
PlanRequest plan_request(const RunConfig& config, int64_t epochs, const std::string& resumed_plan);

// Returns a plan for training on a graph that stays. `bind` gives an executor its leaves, for
// timing.
PlanAnswer plan_training(const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend,
                         const PlanRequest& request, const std::function<void(Executor&)>& bind);

// A batch that plans are tried on. `bind` gives an executor its leaves.
struct TrialBlocks {
  Blocks blocks;
  std::function<void(Executor&)> bind;
};
// Returns one plan for many batches like `trials`. The plan computes nothing once, and its kernels
// are timed on all trials. `epochs` of the request counts steps.
PlanAnswer plan_batches(const Dfg& dfg, const std::vector<TrialBlocks>& trials, const std::shared_ptr<Backend>& backend,
                        const PlanRequest& request);

// Drops values of the forward pass until a step's values take `bytes` less than now
// (plan/policy.h).
bool shrink_plan(PlanAnswer& answer, const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend,
                 int64_t bytes);

// Throws a UserError if --plan is neither the name of a plan nor a file, or if --recompute has an
// unknown value. A program can ask before it reads the data.
void check_plan(const RunConfig& config);

}  // namespace nacre

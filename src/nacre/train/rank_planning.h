// This file plans for ranks: it gives the model that they compute, and one plan for all of them.
// The ranks and their devices need not exist.
#pragma once

#include <memory>
#include <string>

#include "nacre/engine/step_forecast.h"
#include "nacre/train/planner.h"
#include "nacre/train/run_data.h"

namespace nacre {

// Returns the model as ranks compute it, before any planning: with its gradient if `training`, and
// with the embeddings of vertices as an output if asked for.
Dfg rank_model(const RunData& run, bool training, bool embeddings);

// Returns a plan for all ranks. It is made on `part`, that of the rank with the most edges, for the
// kind of device of `backend`. Kernels are not timed: a rank cannot run the kernels of a step
// without the others. The function waits for no other rank, and the device need not exist. Which
// rows travel between ranks is not chosen here.
PlanAnswer plan_for_ranks(const Dfg& dfg, const RankPart& part, const std::shared_ptr<Backend>& backend,
                          const RunConfig& config, const std::string& resumed_plan = "");

}  // namespace nacre

// Policy: from what a user asks for (--plan) to a plan.
//   auto           searched: predicted by this machine's profile, timed on the graph, kept in the
//                  plan cache
//   off            by rules alone: least counted work on an ordinary machine, nothing measured, the
//                  same anywhere
//   vertex, edge   the model as written, its edges cut by destination, or one by one
//   tensor         the model as written, every operation by itself
//   TABLE          a partition table (gtask/table.h) for every kernel over edges that can follow it
//   FILE           a plan file
// What needs an engine (timing kernels, measuring the machine, asking for free memory) is given to
// the policy as functions (PlanningInput).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "nacre/cost/profile.h"
#include "nacre/plan/drop.h"
#include "nacre/plan/search.h"

namespace nacre {

struct PlanRequest {
  std::string plan = "auto";
  // If this is set, --plan auto plans by rules, so that the speed of the machine does not affect
  // the rounding.
  bool deterministic = false;
  int epochs = 200;
  int64_t memory_limit = 0;  // bytes; 0 means what the machine has free
  bool use_cache = true;
  // If this is set, --plan auto drops values where that saves much memory for little time, and
  // always if the memory would not suffice otherwise.
  bool recompute = true;
  std::set<std::string> disabled_passes;  // left out of every plan but those of files
  std::string resumed_plan;               // plan file of the run that is continued
  // Returns whether the host's memory has room for this many more bytes; null: it always has. On a
  // GPU, memory_limit says nothing about the host.
  std::function<bool(int64_t bytes)> host_has_room = {};
  // Share of the predicted time of the epochs that timing kernels may take; preparing them takes
  // about half as much again.
  double budget_share = 0.01;
};

struct PlanAnswer {
  Plan plan;
  SearchResult search;  // empty unless searched now
  // How the plan was found: searched (just now), cached (an earlier search, from the plan cache),
  // rules, file (`--plan FILE`, or the plan of a resumed run) or given (by name, such as `--plan
  // vertex`).
  std::string source;
  std::vector<Dropped> dropped;  // what the backward pass computes again
};

// Times kernels and whole steps of plans on the device.
class PlanTimer {
 public:
  virtual ~PlanTimer() = default;
  // Return measured seconds, or a negative number if the plan does not fit into memory.
  virtual double kernel(const Plan& plan, size_t kernel) = 0;
  virtual double step(const Plan& plan) = 0;
};

// What plans are made for: a model on a graph that stays, or on batches that change, of which
// `blocks` are typical.
struct PlanningInput {
  Dfg dfg;
  const Blocks& blocks;
  bool changing = false;  // batches come and go: nothing can be computed once
  DeviceTraits device = {};
  std::string device_type = {};  // "cpu" or "cuda", for the key of the plan cache
  // The version of the kernels. It is part of the key of the plan cache, so plans found with other
  // kernels are not used.
  std::string kernels_version = {};
  std::function<int64_t()> available_bytes = {};  // returns the free bytes of the device's memory
  // Returns the measured profile of the device. If this is null, predictions stay nominal.
  std::function<DeviceProfile()> profile = {};
  // Makes a timer that takes at most `memory` bytes; a step of the plan by rules takes
  // `step_bytes`.
  std::function<std::unique_ptr<PlanTimer>(int64_t memory, int64_t step_bytes)> timer = {};
};

// Returns the plan that the request asks for. A resumed run keeps its plan.
PlanAnswer answer_request(PlanningInput input, const PlanRequest& request);

// Drops values of the forward pass until a step's values take `bytes` less than now, or until no
// more can be dropped. Returns false when nothing can be dropped.
bool shrink_plan(PlanAnswer& answer, PlanningInput input, int64_t bytes);

// Returns the options of a plan that --plan names (vertex, edge, tensor, TABLE); nothing for other
// texts. Throws UserError if `plan` looks like a table but is not a valid one.
std::optional<PlanOptions> named_options(const std::string& plan);
// Returns whether `text` is a value of --plan that is not the name of a file.
bool is_plan_name(const std::string& text);

// Returns the part of a model's DFG that a training step computes: gradients and the loss, without
// scores. Plans are made for this part.
Dfg without_scores(const Dfg& dfg);

// Returns the folder of kept plans; an empty text, and a message for readers of details, if there
// is no place to keep them.
std::string plan_cache();

// ---- steps of answer_request(), in policy_search.cpp

// Returns the plan for --plan auto and off, before values are dropped.
PlanAnswer search_or_rule(const PlanningInput& input, const PlanRequest& request);
// Returns how many bytes a step's values may take.
int64_t memory_for(const PlanningInput& input, const PlanRequest& request);
// Returns whether the edges of the graph are divided already, or the host has room to divide them.
// Call this before making a plan whose options divide the edges.
bool has_room_to_divide(const PlanningInput& input, const PlanRequest& request);

}  // namespace nacre

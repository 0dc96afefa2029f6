// The joint search (WG9): which option at every site, which table for every kernel that has a choice. Candidates are
// whole plans; their time is the sum of their kernels', predicted from counted work by a cost model. The best
// candidates of each group of sites are then told apart by timing, on the real graph, the kernels in which they differ,
// as long as the time budget lasts. At last the plan by rules is kept unless another one is shown to be faster: the two
// take turns with whole steps, where what the run would gain pays for these steps. Search, estimate and cost model are
// three things: see work.h and cost/model.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nacre/cost/model.h"
#include "nacre/plan/plan.h"
#include "nacre/plan/work.h"

namespace nacre {

// Seconds of one run of a kernel of the plan on this machine; negative when it cannot be measured (no memory).
using Measure = std::function<double(const Plan& plan, size_t kernel)>;

// The same of a whole step. Two plans may take turns.
using MeasureStep = std::function<double(const Plan& plan)>;

struct NamedOptions {
  std::string name;
  PlanOptions options;
};

struct SearchOptions {
  const CostModel* model = &nominal_cpu().model;
  int64_t cache_bytes = nominal_cpu().cache_bytes;
  double epochs = 100;        // what is computed once counts as a share of an epoch
  double budget_seconds = 0;  // for timing; 0: predictions alone
  int64_t memory_limit = 0;   // bytes a step's values may take; 0: any
  int64_t keep_limit = 0;     // the same for plans that keep what could be computed again; 0: any
  // What a byte costs, of the step's peak and of the orders its kernels walk: of plans that take about equally long
  // the smaller one is wanted.
  double seconds_of_byte = 0;
  Measure measure;
  // With these the plan by rules defends itself against the plan found and the others.
  const PlanOptions* rules = nullptr;
  std::vector<NamedOptions> others;
  MeasureStep measure_step;
};

struct Candidate {
  std::string group;  // the parameter whose sites differ, or the kernel whose table does; "step": whole plans
  std::string what;   // "matmul=combine matmul_t=aggregate weight_grad=aggregate"
  double predicted = 0;
  double measured = -1;  // predictions of its kernels replaced by timings; negative: not timed
  bool chosen = false;
};

struct SearchResult {
  PlanOptions options;
  std::vector<Candidate> candidates;
  std::vector<Timing> samples;  // kernels timed
  double predicted = 0;         // an epoch of the chosen plan
  double seconds = 0;           // the search took
};

SearchResult search_plan(const Dfg& dfg, const Blocks& blocks, const PlanOptions& base, const SearchOptions& how);

// Predicted seconds of one epoch of a plan.
double predict_plan(const Plan& plan, const Blocks& blocks, const SearchOptions& how);

}  // namespace nacre

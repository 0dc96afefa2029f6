// The joint search (WG9): which option at every site, and which table for every kernel that has a
// choice. Candidates are whole plans. Their time is the sum of the times of their kernels, which a
// cost model predicts from counted work. Candidates that do at least as much of every kind of work
// as another one are left out. Then the best of the others in each group of sites are told apart by
// timing, on the real graph, the kernels in which they differ, as long as the time budget lasts. In
// the end, the plan by rules is kept unless another one is shown to be faster: the two take turns
// with whole steps, if the gain of the run would pay for these steps. Search, estimate and cost
// model are separate: see work.h and cost/model.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nacre/cost/model.h"
#include "nacre/plan/plan.h"
#include "nacre/plan/space.h"
#include "nacre/plan/work.h"

namespace nacre {

// Returns the seconds of one run of a kernel of the plan on this machine, or a negative number if
// it cannot be measured (no memory).
using Measure = std::function<double(const Plan& plan, size_t kernel)>;

// Returns the measured seconds of one whole step of a plan, negative if it does not fit into
// memory. The search may call it for two plans in turn, to compare them under the same conditions.
using MeasureStep = std::function<double(const Plan& plan)>;

struct NamedOptions {
  std::string name;
  PlanOptions options;
};

struct SearchOptions {
  const CostModel* model = &nominal_cpu().model;
  int64_t cache_bytes = nominal_cpu().cache_bytes;
  // The device on which candidates are timed, with their values stored as that device stores them.
  // Predictions count all values as f32, so that all precisions get the same choices.
  const DeviceTraits* device = nullptr;
  double epochs = 100;        // epochs of a run, over which work that is done once is spread
  double budget_seconds = 0;  // seconds for timing; 0 means predictions alone
  // The measured rate in bytes per second at which rows of other ranks come in; 0 means the rate of
  // far memory in the cost model.
  double link_bytes_per_second = 0;
  int64_t memory_limit = 0;  // bytes that the values of a step may take; 0 if there is no limit
  // The bytes that the values of a step may take in plans that keep what could be computed again; 0
  // means any number.
  int64_t keep_limit = 0;
  // How many seconds a byte counts as, both of the step's peak and of the orders that its kernels
  // walk. Of plans that take about equally long, the smaller one is wanted.
  double seconds_of_byte = 0;
  // Whether orders of typed products that divide the edges are compared, too (sites.h). The edges
  // are divided when the first of these plans is made, which takes time and memory.
  bool divide_edges = false;
  Measure measure;
  // The plan by rules, or null. If it is given, whole steps of it are compared with those of the
  // plan that was found and of `others`.
  const PlanOptions* rules = nullptr;
  std::vector<NamedOptions> others;
  MeasureStep measure_step;
};

struct Candidate {
  // The parameter whose sites differ, or the kernel whose table does; "step" for whole plans.
  std::string group;
  std::string what;  // for example "matmul=combine matmul_t=aggregate weight_grad=aggregate"
  double predicted = 0;
  // The predicted seconds, in which timings replace the predictions of the kernels that were timed.
  // Negative if nothing was timed.
  double measured = -1;
  bool chosen = false;
};

struct SearchResult {
  PlanOptions options;
  std::vector<Candidate> candidates;
  SearchSpace space;
  std::vector<Timing> samples;  // the kernels that were timed
  double predicted = 0;         // predicted seconds of an epoch of the chosen plan
  double seconds = 0;           // duration of the search
};

SearchResult search_plan(const Dfg& dfg, const Blocks& blocks, const PlanOptions& base, const SearchOptions& how);

// Returns the predicted seconds of one epoch of a plan.
double predict_plan(const Plan& plan, const Blocks& blocks, const SearchOptions& how);

}  // namespace nacre

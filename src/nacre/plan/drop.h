// Which values of the forward pass a plan drops and computes again in the backward pass (dfg/recompute.h): what that
// saves of a step's memory against what it adds to its time, both by whole plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/plan/search.h"

namespace nacre {

struct Dropped {
  std::string value;
  int64_t bytes = 0;   // by which the step's peak would be higher if it were kept
  double seconds = 0;  // predicted, that a step would be shorter
};

struct DropOptions {
  const CostModel* model = &nominal_cpu().model;
  int64_t cache_bytes = nominal_cpu().cache_bytes;
  // A value is dropped when this saves more than a share of what a run keeps in memory (1: never), and more than so
  // many bytes, and the share by which a step becomes longer is less than a factor times the share of memory saved.
  double least_saved = 0.10;
  int64_t least_bytes = int64_t{16} << 20;
  double time_for_memory = nominal_cpu().time_for_memory;
  // Bytes that a step's values may take; what is needed to stay below them is dropped at any price, cheapest for its
  // bytes first, and walks edges again if nothing else helps. 0: any.
  int64_t limit = 0;
};

// Sets `options.recompute`. Returns what was dropped, most bytes first.
std::vector<Dropped> choose_dropped(const Dfg& dfg, const Blocks& blocks, PlanOptions& options, const DropOptions& how);
// What the values in `options.recompute` save and cost, each beside the others.
std::vector<Dropped> price_dropped(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options,
                                   const DropOptions& how);

// A line for each; empty when there is none.
std::string dropped_text(const std::vector<Dropped>& dropped);

}  // namespace nacre

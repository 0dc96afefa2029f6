// Decides which values of the forward pass a plan drops and computes again in the backward pass
// (dfg/recompute.h). It compares the memory that this saves in a step with the time that it adds,
// both for whole plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/plan/search.h"

namespace nacre {

struct Dropped {
  std::string value;
  int64_t bytes = 0;   // bytes by which the peak of the step would be higher if the value were kept
  double seconds = 0;  // predicted seconds by which a step would be shorter if the value were kept
};

struct DropOptions {
  const CostModel* model = &nominal_cpu().model;
  int64_t cache_bytes = nominal_cpu().cache_bytes;
  const DeviceTraits* device = nullptr;  // see PassControl::device
  // A value is dropped if this saves more than least_saved of what a run keeps in memory (1 means
  // never) and more than least_bytes, and if the share by which a step becomes longer is less than
  // time_for_memory times the share of memory saved.
  double least_saved = 0.10;
  int64_t least_bytes = int64_t{16} << 20;
  double time_for_memory = nominal_cpu().time_for_memory;
  // Bytes that the values of a step may take; 0 means any number. To stay below it, values are
  // dropped at any price, those that are cheapest for their bytes first. If nothing else helps, the
  // backward pass walks edges again.
  int64_t limit = 0;
};

// Sets `options.recompute`. Returns what was dropped, most bytes first.
std::vector<Dropped> choose_dropped(const Dfg& dfg, const Blocks& blocks, PlanOptions& options, const DropOptions& how);
// Returns what each value in `options.recompute` saves and costs while all others stay dropped.
std::vector<Dropped> price_dropped(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options,
                                   const DropOptions& how);

// Returns a line for each value, or an empty text if there is none.
std::string dropped_text(const std::vector<Dropped>& dropped);

}  // namespace nacre

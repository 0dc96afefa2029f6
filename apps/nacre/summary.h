// Describes a plan in a few lines for people: what runs where, how long an epoch takes, how much
// memory it takes, what was chosen and why.
#pragma once

#include <string>
#include <vector>

#include "nacre/cost/model.h"
#include "nacre/engine/memory.h"
#include "nacre/train/planner.h"
#include "planned.h"
#include "ranks_plan.h"

namespace nacre {
struct CacheForecast;
}  // namespace nacre

namespace nacre::cli {

struct Summary {
  const Planned* planned = nullptr;
  const Plan* plan = nullptr;  // plan of the session, or of a GPU that is not on this machine
  std::string device, precision;
  std::vector<MemoryItem> memory, host_memory;
  int64_t free_bytes = 0;  // free memory of the device; 0: not known
  int64_t host_bytes = 0;  // largest size of the whole process, the program included; 0: not known
  std::string source;      // how the plan was found (plan/policy.h)
  std::vector<Dropped> dropped;
  // Measured seconds of all kernels of a step; negative if they were not measured.
  double measured = -1;
  // What the batches of an epoch read with --cache lookahead; null if rows are not cached so.
  const CacheForecast* forecast = nullptr;
  const RanksSummary* ranks = nullptr;  // what the ranks do; null if there is one device
};

std::string summary_text(const Summary& s);

// Holds a cost model: that of this machine if it was measured before (`measured`), otherwise that
// of an ordinary machine.
struct Prices {
  CostModel model;
  int64_t cache_bytes = 0;
  bool measured = false;
};
Prices known_prices(bool gpu);

}  // namespace nacre::cli

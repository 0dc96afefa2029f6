// Collects what nacre plan and nacre explain show of a run on several devices: what each rank owns,
// what it sends and receives, how long its steps are predicted to take, and how much memory it
// needs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nacre/engine/step_forecast.h"
#include "planned.h"

namespace nacre::cli {

struct PlannedRank {
  std::string device;
  std::string precision;
  double share = 0;
  RankFigures figures;
  int64_t limit = 0;  // bytes that the ranks in this memory may take together
  // Name of the memory that the rank's values lie in: "host" or "cuda:0".
  std::string memory;
  bool measured_rates = false;    // whether predictions use rates that were measured
  StepSplit split;                // predicted times of a step
  double sent = 0, received = 0;  // bytes of a step, including those for sums over all ranks
};

// Describes one communication kernel of the plan, on the rank with the most edges.
struct PlannedCall {
  StepCall call;
  std::string what;        // for example "exchange v0[16]"
  double seconds = 0;      // predicted seconds of the communication
  size_t hidden_by = 0;    // number of kernels that run while the rows travel
  size_t reader = 0;       // the first kernel that reads the result
  int64_t early_rows = 0;  // rows of that kernel that are computed while the rows travel
};

struct RanksSummary {
  std::vector<PlannedRank> ranks;
  int largest = 0;
  std::vector<PlannedCall> calls;
  // This text says which rows travel and why, and what other choices would cost.
  std::string travels;
  double step = 0;  // predicted seconds of a step on the slowest rank
};

// Returns what the ranks of a planned run do. `planned` must have several devices.
RanksSummary summarise_ranks(const Planned& planned);
std::string planned_ranks_text(const RanksSummary& summary);
nlohmann::ordered_json planned_ranks_json(const RanksSummary& summary);

}  // namespace nacre::cli

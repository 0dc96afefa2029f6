// Groups batches so that the work of one runs while units would idle for the others, and chooses an
// execution plan for every batch of a group (DA6). This is Algorithm 1 of DAHA, which works on two
// levels in the manner of expectation maximisation.
//
// The lower level takes the groups as they are and chooses the placings of their batches together.
// The upper level dissolves groups whose batches gain too little from each other, and joins batches
// that compute for longer than they send with batches that send for longer than they compute. The
// wanted gain grows from round to round.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/schedule/epg/timeline.h"

namespace nacre {

struct GroupingOptions {
  double gain = 0.5;     // µ*: a group that gains at least this much is left as it is
  double step = 0.1;     // α: the wanted gain grows by this much in every round
  int largest = 4;       // β: largest number of batches in a group
  int rounds = 8;        // τ: largest number of rounds
  int64_t trials = 300;  // number of schedules that are tried at most for a group
  uint64_t seed = 0;     // seed of the first grouping
};

// Grouping is a schedule of all batches: their groups and placings.
struct Grouping {
  std::vector<std::vector<int>> groups;  // the batches of each group, in the order of computation
  std::vector<size_t> placings;          // index of the placing of each batch
  TimelineOptions options;
  double seconds = 0;  // predicted makespan
};

// Returns the batches of the grouping in the order in which they run, each with its placing and the
// number of its group.
std::vector<ScheduledBatch> scheduled_batches(const Grouping& grouping,
                                              const std::vector<std::vector<Placing>>& placings);

// Returns the schedule that runs the batches one after another in their order, each with the
// placing that is best for it alone. No work of a batch runs beside work of another one.
Grouping in_turn(const ExecutionPlanGraph& graph, const std::vector<std::vector<Placing>>& placings);

// Returns the best schedule that Algorithm 1 finds; it is never worse than in_turn().
Grouping group_batches(const ExecutionPlanGraph& graph, const std::vector<std::vector<Placing>>& placings,
                       const GroupingOptions& options = {});

}  // namespace nacre

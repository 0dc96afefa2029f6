// A Timeline says when each piece of work of placed batches runs (DA6). Work starts as soon as its
// inputs are there and enough workers of its unit are free. If several pieces of work could start,
// that of the earliest batch starts. So later batches use the time in which a batch leaves units
// idle (eager start).
#pragma once

#include <span>
#include <vector>

#include "nacre/schedule/epg/placing.h"

namespace nacre {

// ScheduledBatch is a batch in the order of a schedule.
struct ScheduledBatch {
  int batch = 0;                     // number of the batch in the EPG
  const Placing* placing = nullptr;  // the placing must outlive the timeline
  int group = 0;
};

struct TimelineOptions {
  // If true, work of a group may start before the previous group has ended. If false, groups run
  // one after the other.
  bool eager = true;
  // If this number n is not 0, the batches are taken n at a time, and all n are sampled before any
  // other work of them starts (group-based in-turn pipelining, DA2). If it is 0, a batch is sampled
  // when its turn comes. A number other than 0 needs `eager` and excludes `one_by_one`.
  int sampled_together = 0;
  // If true, a batch starts only when the previous one has ended, so nothing overlaps.
  bool one_by_one = false;
};

struct TimelineSpan {
  int turn = 0;    // index of the batch in the order of the schedule
  int work = 0;    // index in Placing::work
  int worker = 0;  // the first worker of the unit that does the work
  double begin = 0, end = 0;
};

struct Timeline {
  std::vector<TimelineSpan> spans;  // sorted by their beginning
  double makespan = 0;
  std::vector<double> busy;  // share of the makespan in which the workers of each unit work
};

Timeline run_schedule(const ExecutionPlanGraph& graph, std::span<const ScheduledBatch> order,
                      const TimelineOptions& options = {});

// Checks a timeline, for tests. Throws InternalError if two pieces of work overlap on a worker, if
// work starts before the work that it waits for has ended, if work reads weights that are older
// than the staleness allows, or if two batches apply their gradients on different devices.
void check_timeline(const ExecutionPlanGraph& graph, std::span<const ScheduledBatch> order, const Timeline& timeline);

}  // namespace nacre

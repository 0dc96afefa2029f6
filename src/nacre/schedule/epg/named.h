// This file makes schedules by name (DA8). The named schedules show how other systems use a host
// and a device, but are made from the same EPG, so that their predicted times differ by the
// schedule and by nothing else.
#pragma once

#include <string>
#include <vector>

#include "nacre/schedule/epg/bound.h"
#include "nacre/schedule/epg/grouping.h"

namespace nacre {

struct ScheduleName {
  std::string name;
  std::string what;  // description for users, in one line
};
// Returns the schedules that --schedule names, the planner's own (`daha`) first.
std::vector<ScheduleName> schedule_names();

struct NamedSchedule {
  std::string name;
  Grouping grouping;
  std::vector<std::vector<Placing>> placings;  // placings that `grouping` chooses from
  Timeline timeline;
};

struct SchedulingOptions {
  GroupingOptions grouping;
  // Sampling is shared out so that it takes at most 1 + epsilon times the least possible time
  // (share_jobs()).
  double epsilon = 0.05;
  // If true, only placings are used that a run can carry out: the rows of a batch are gathered on
  // the host, its neural operations share a device, and updates are applied on the last device.
  bool whole_batches = false;
};

// Returns the schedule of that name. If the EPG does not allow it (for example because there is no
// device but the host), the schedule has no batches. Throws InternalError for other names.
NamedSchedule make_schedule(const ExecutionPlanGraph& graph, const std::string& name,
                            const SchedulingOptions& options = {});

// ScheduleComparison holds all schedules of an EPG and a bound of the time that none of them can
// beat. The schedule `daha` is never slower than the others.
struct ScheduleComparison {
  // These are the schedules that the EPG allows, in the order of schedule_names().
  std::vector<NamedSchedule> schedules;
  LowerBound bound;
  const NamedSchedule* find(const std::string& name) const;  // null if the EPG does not allow it
};
ScheduleComparison compare_schedules(const ExecutionPlanGraph& graph, const SchedulingOptions& options = {});

// Returns how much longer a schedule takes than the bound, as a share of the bound.
double gap_of(const NamedSchedule& schedule, const LowerBound& bound);

}  // namespace nacre

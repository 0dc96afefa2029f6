// This file shows schedules as text and as JSON.
#pragma once

#include <string>

#include "nacre/schedule/epg/named.h"

namespace nacre {

// Returns a picture of the first `most` seconds, or of the whole schedule if `most` is 0. The
// picture has a line of `width` characters for each worker of each unit. A character shows what
// runs on the worker for most of the character's time: s sample, g gather, a aggregate, c combine,
// A and C their gradients, u update, > and < transfers, . nothing.
std::string gantt_text(const ExecutionPlanGraph& graph, const NamedSchedule& schedule, int width = 72, double most = 0);

// Returns a table of all schedules with their predicted times, the bound and the gaps, and the
// picture of the schedule named `shown`.
std::string schedules_text(const ExecutionPlanGraph& graph, const ScheduleComparison& comparison,
                           const std::string& shown);

// Returns the table of schedules_text() as JSON, and for every batch of the schedule named `shown`
// its group, the way it is written and the device of every operation.
std::string schedule_json(const ExecutionPlanGraph& graph, const ScheduleComparison& comparison,
                          const std::string& shown);

}  // namespace nacre

// This file learns what the operations of a session's batches cost (DA1), and finds the schedules
// that runs follow in which the place of work differs from batch to batch (--schedule daha and
// bytegnn).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nacre/plan/batch_places.h"
#include "nacre/schedule/epg/named.h"
#include "nacre/train/operation_samples.h"

namespace nacre {

// A schedule is made of this many batches. The batches of an epoch are alike, so a schedule of more
// batches would only repeat itself.
inline constexpr int64_t kScheduledBatches = 24;
// If costs are not known, operations are measured for this many seconds to make a schedule.
inline constexpr double kShortMeasuring = 6;

// Returns the settings of a plain session on the data of the session that has these settings: it
// follows no schedule, and the features are already what --normalize-features asks for.
RunConfig settings_beside(RunConfig config);

// The costs that learn_costs() has learned for one graph and model.
struct LearnedCosts {
  OperationCosts costs;
  double error = 0;  // what held_out_batch_error() returns for the device of the run
  int64_t batches = 0;
  double seconds = 0;  // seconds that measuring took
};

// Starts the session, times operations on its device for about `seconds` seconds (for half of them
// on the host if the device is a GPU), and learns and stores their costs.
LearnedCosts learn_costs(BatchSession& session, double seconds);
// Returns the stored costs. If none are stored, learns them for kShortMeasuring seconds.
OperationCosts known_costs(BatchSession& session);

// Returns the shapes of at most `count` batches that are drawn as the run draws its batches.
std::vector<BatchShape> run_shapes(const BatchSession& session, int64_t count);

// Returns the EPG of the batches of a run with the session's plan, in which every layer has the
// order that it has there.
ExecutionPlanGraph run_graph(const BatchSession& session, const OperationCosts& costs, int staleness);

// Returns the places of the batches in a schedule of an EPG.
BatchPlaces places_of(const ExecutionPlanGraph& graph, const NamedSchedule& schedule, const LowerBound& bound);

// The schedules of a run's batches that runs can follow, and the bound of their times.
struct RunSchedules {
  ExecutionPlanGraph graph;
  ScheduleComparison comparison;
};
// Makes them for a session that follows no schedule.
RunSchedules find_schedules(BatchSession& session, int staleness);

// Returns where a run with the session's settings draws and computes its batches if it follows the
// schedule of this name. Throws a UserError if there is no such schedule for this run.
BatchPlaces find_places(BatchSession& session, const std::string& name, int staleness);

// Returns the places in one line for people.
std::string places_text(const BatchPlaces& places, const std::string& device);

}  // namespace nacre

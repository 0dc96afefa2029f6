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

// Schedules are made for this many batches. The batches of an epoch are alike, so a schedule for
// more batches would only repeat itself.
inline constexpr int64_t kScheduledBatches = 24;
// If no costs are stored, known_costs() measures operations for this many seconds.
inline constexpr double kShortMeasuring = 6;

// Returns the settings of a second session on the data of a session with the settings `config`. The
// second session follows no schedule, has no staleness, and does not normalise features, because
// the data already have the features that --normalize-features asks for.
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

// Returns the EPG of the batches of a run with the session's plan. Every layer keeps the order of
// its operations that the plan has.
ExecutionPlanGraph run_graph(const BatchSession& session, const OperationCosts& costs, int staleness);

// Returns where a schedule of the EPG `graph` draws and computes each batch, with the predicted
// seconds of a batch.
BatchPlaces places_of(const ExecutionPlanGraph& graph, const NamedSchedule& schedule, const LowerBound& bound);

// The EPG of a run's batches, and the schedules of it that runs can follow, with the bound of their
// times.
struct RunSchedules {
  ExecutionPlanGraph graph;
  ScheduleComparison comparison;
};
// Returns the schedules of the batches of `session`, which must itself follow no schedule. If the
// costs of operations are not known, measures them first.
RunSchedules find_schedules(BatchSession& session, int staleness);

// Returns where a run with the session's settings draws and computes its batches if it follows the
// schedule of this name. Throws a UserError if there is no such schedule for this run.
BatchPlaces find_places(BatchSession& session, const std::string& name, int staleness);

// Returns the places in one line for people.
std::string places_text(const BatchPlaces& places, const std::string& device);

}  // namespace nacre

// This file prints the costs of the operations of mini-batches as tables, and makes schedules of
// batches from these costs.
#pragma once

#include <optional>
#include <string>

#include "nacre/cost/operation_costs.h"
#include "nacre/schedule/epg/gantt.h"
#include "nacre/train/operation_samples.h"

namespace nacre::cli {

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

// Return the costs as a table for people, and as JSON with the key of operation_costs_key().
std::string costs_text(const OperationCosts& costs);
std::string costs_json(const LearnedCosts& learned, const std::string& key);

// Returns the line in which nacre plan predicts the time of an epoch from the stored costs, or an
// empty text if no costs are stored.
std::string forecast_text(const BatchSession& session);

// ShownSchedule is what nacre plan --schedule shows.
struct ShownSchedule {
  ExecutionPlanGraph graph;
  ScheduleComparison comparison;
  std::string shown;   // name of the schedule that is shown
  std::string source;  // says where the times come from, as a sentence
};
// Makes schedules of batches of the session, of which the one called `name` is shown. `device`
// names a GPU, which need not exist in this machine; if it is empty, the device of the run is
// taken.
ShownSchedule schedule_batches(BatchSession& session, const std::string& name, int staleness,
                               const std::string& device);
// Return the schedule as text for people, and as JSON.
std::string shown_text(const ShownSchedule& schedule);
std::string shown_json(const ShownSchedule& schedule);

}  // namespace nacre::cli

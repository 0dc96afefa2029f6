// This file prints the costs of the operations of mini-batches as tables, and makes schedules of
// batches from these costs.
#pragma once

#include <optional>
#include <string>

#include "nacre/cost/operation_costs.h"
#include "nacre/schedule/epg/gantt.h"
#include "nacre/train/batch_scheduling.h"

namespace nacre::cli {

// These functions return the costs as a table for people, and as JSON with the key of
// operation_costs_key().
std::string costs_text(const OperationCosts& costs);
std::string costs_json(const LearnedCosts& learned, const std::string& key);

// Returns the line in which nacre plan predicts the time of an epoch from the stored costs, or an
// empty text if no costs are stored.
std::string forecast_text(const BatchSession& session);

// Holds what nacre plan --schedule shows.
struct ShownSchedule {
  ExecutionPlanGraph graph;
  ScheduleComparison comparison;
  std::string shown;   // name of the schedule that is shown
  std::string source;  // says where the times come from, as a sentence
  // The places where a run that follows this schedule draws and computes its batches; empty if no
  // run can follow it, or if the schedule treats all batches alike.
  BatchPlaces places;
};
// Makes schedules of batches of the session, and returns them with the one called `name` as the one
// that is shown. `device` names a GPU, which need not exist in this machine; if it is empty, the
// device of the run is taken.
ShownSchedule schedule_batches(BatchSession& session, const std::string& name, int staleness,
                               const std::string& device);
// These functions return where the batches of a training run were drawn and computed, and the
// predicted and the measured time of an epoch (`epoch_ms`). schedule_line() returns a line for
// people, which is empty if no schedule places batches. schedule_report_json() returns JSON, which
// is null if the run follows no schedule.
std::string schedule_line(VertexModel& session, double epoch_ms);
std::string schedule_report_json(VertexModel& session, double epoch_ms);

// These functions return the schedule as text for people, and as JSON.
std::string shown_text(const ShownSchedule& schedule);
std::string shown_json(const ShownSchedule& schedule);

}  // namespace nacre::cli

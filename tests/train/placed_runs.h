// Runs whose batches are computed on two places, and plan files that say where.
#pragma once

#include <string>

#include "nacre/base/pending_file.h"
#include "nacre/plan/batch_places.h"
#include "nacre/train/batch_session.h"
#include "train/runs.h"

namespace nacre::test {

// Writes the plan of a run with these places to `file`, and returns the run that follows them.
inline RunConfig placed_run(const Dataset& data, RunConfig config, const BatchPlaces& places, const std::string& file) {
  config.batch_schedule = "auto";
  Plan plan = BatchSession(data, config, {.evaluation = false}).plan();
  plan.places = places;
  write_file(file, plan_json(plan) + "\n");
  config.plan = file;
  config.batch_schedule = "daha";
  return config;
}

}  // namespace nacre::test

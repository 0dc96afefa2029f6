// Declares what training and using a model have in common: the data, the purpose that the memory
// bill knows, and a run that was stored.
#pragma once

#include <cstdint>
#include <string>

#include "common.h"
#include "nacre/train/bill.h"
#include "nacre/train/trained_model.h"

namespace nacre::python {

// Returns the data of a run: those of `graph` or, if the program has passed none, those that
// `config` names, which are read. Sets config.data and config.load to those of `graph`, if it is
// given.
Dataset data_of(const GraphData* graph, RunConfig& config);

// Returns what a run is for, which decides its memory bill. Python programs hold memory of their
// own, and may already hold the data.
RunPurpose purpose_of(const GraphData* graph, bool trains, int64_t loaded = 0);

// Holds the settings and weights of a run whose weights are used again.
struct StoredRun {
  // Reads the settings of the run at `path`; its model will compute on `device`. Throws UserError
  // if the run was trained on a graph of a Python program and no graph is given.
  StoredRun(const GraphData* graph, const std::string& path, const std::string& device);

  RunConfig config;
  TrainedModel trained;
};

}  // namespace nacre::python

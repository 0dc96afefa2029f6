// Writes the results of a training run as JSON, for nacre train --json and the Python package.
#pragma once

#include <string>

#include "account.h"
#include "nacre/train/resources.h"
#include "nacre/train/trainer.h"
#include "nacre/train/vertex_model.h"

namespace nacre::cli {

// Holds shares of the time that the steps of mini-batches took, in percent. A share that does not
// apply is negative.
struct Shares {
  double waiting = -1, device = -1;
  ResourceUse use;  // how busy a GPU and its links were
};
Shares shares_of(VertexModel& session);

// Returns the peak of GPU memory in bytes; negative if there is no GPU.
double device_peak(const VertexModel& session);

// Returns the results as one JSON object. If the run is on the host, its planned memory is that of
// the process (`account`); otherwise it is what the session plans on its GPU.
std::string train_result_json(VertexModel& session, const TrainResult& result, const std::string& folder,
                              const MemoryAccount& account);

// Writes the results, the memory bill and the times of the kernels as result.json into the run
// folder, and the picture of the partition beside it. Does nothing if there is no run folder.
void write_result(VertexModel& session, const std::string& json, const std::string& folder,
                  const MemoryAccount& account);

}  // namespace nacre::cli

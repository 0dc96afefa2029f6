// This file makes the performance model of one device and one model. It is kept in the cache folder
// beside the machine's profile, because learning it takes about a minute.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nacre/cost/performance_model.h"
#include "nacre/train/step_samples.h"

namespace nacre {

// Returns the key of a stored performance model. The key names what the performance model is valid
// for: the device, the version of the kernels, and the settings of the model that are the same on
// every graph. `threads` are those of a device on the host.
std::string step_model_key(const RunConfig& config, int threads);

struct StepModel {
  PerformanceModel model;
  RegressorScore score;          // score of the chosen regressor on graphs that it had not seen
  std::vector<TimedPart> parts;  // what it learned from
};

// Fits the regressor with the best of `scores` to all parts, and returns the result.
StepModel learn_step_model(std::vector<TimedPart> parts, const std::vector<RegressorScore>& scores, uint64_t seed);

// Returns the stored model; nothing if there is none for this key. A file that cannot be used is
// reported as a warning.
std::optional<PerformanceModel> load_step_model(const std::string& key);
// Stores the model under `key`, in a temporary file that is renamed. A failure is only a warning.
void save_step_model(const std::string& key, const StepModel& model);

// Returns the stored model of the device and the settings; if there is none, times parts of the
// sources, learns from them, and stores the result.
PerformanceModel step_model(const RunConfig& config, const std::vector<PartSource>& sources,
                            const PartSampling& sampling);

}  // namespace nacre

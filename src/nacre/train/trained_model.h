// What training left: weights and the settings of the model they belong to.
#pragma once

#include <string>

#include "nacre/train/safetensors.h"

namespace nacre {

struct TrainedModel {
  std::string file;         // that the weights were read from
  std::string config_json;  // what apply_config_json takes
  NamedTensors weights;
};

// `path` is a run folder (its final weights or, of a run that was interrupted, those of its newest checkpoint), the
// folder of one checkpoint (its best weights so far), or a weights file. Throws UserError when there are no weights.
TrainedModel read_trained_model(const std::string& path);

}  // namespace nacre

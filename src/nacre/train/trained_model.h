// What training left: weights and the settings of the model they belong to.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/train/safetensors.h"

namespace nacre {

struct TrainedModel {
  std::string file;         // that holds the weights
  std::string config_json;  // what apply_config_json takes
  std::string prefix;       // that the names of the weights begin with in the file

  int64_t bytes() const;  // of the weights
  // Reads the weights, under names without the prefix. Throws UserError.
  NamedTensors read_weights() const;
};

// The settings of a trained model and where its weights lie; the weights are not read yet, since
// the settings say how much memory a run takes. `path` is a run folder (its final weights or, of a
// run that was interrupted, those of its newest checkpoint), the folder of one checkpoint (its best
// weights so far), or a weights file. Throws UserError when there are no weights.
TrainedModel read_trained_model(const std::string& path);

}  // namespace nacre

// TrainedModel: the weights of a trained model and the settings that they belong to.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/train/safetensors.h"

namespace nacre {

struct TrainedModel {
  std::string file;         // file that holds the weights
  std::string config_json;  // settings for apply_config_json()
  std::string prefix;       // prefix of the names of the weights in the file

  int64_t bytes() const;  // bytes of the weights
  // Reads the weights, and leaves out `prefix` from their names. Throws UserError if the file is
  // not valid.
  NamedTensors read_weights() const;
};

// Returns the settings of a trained model and where its weights are. The weights are not read yet,
// because the settings say how much memory a run takes. `path` is a run folder (its final weights
// or, if the run was interrupted, those of its newest checkpoint), the folder of one checkpoint
// (its best weights so far), or a weights file. Throws UserError if there are no weights.
TrainedModel read_trained_model(const std::string& path);

}  // namespace nacre

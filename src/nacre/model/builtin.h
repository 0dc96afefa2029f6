// Lists the models that come with Nacre. Each file NAME.cpp of the folder models/ defines
// models_in_NAME(); the build makes the list of these functions from the files it finds there
// (CMakeLists.txt).
#pragma once

#include <vector>

#include "nacre/model/model.h"

namespace nacre {

struct ModelEntry {
  ModelInfo info;
  BuildModel build;
};

ModelKnob edge_dropout_knob();  // for models that sum neighbours by Napa::edge_dropout

// Returns the models of all files of models/.
std::vector<ModelEntry> builtin_models();

}  // namespace nacre

// Declares the registry of models for the other files of this room.
#pragma once

#include <string>

#include "nacre/model/builtin.h"

namespace nacre {

// Returns the model of that name. Throws UserError, with the nearest name, if there is none.
const ModelEntry& find_model(const std::string& name);

// Adds a model. It replaces an earlier model of the same name; a model that comes with Nacre cannot
// be replaced. Entries that find_model() has returned stay valid.
void replace_model(ModelInfo info, BuildModel build);

}  // namespace nacre

// The registry of models, as the other files of this room use it.
#pragma once

#include <string>

#include "nacre/model/builtin.h"

namespace nacre {

// Returns the model of that name. Throws UserError, with the nearest name, if there is none.
const ModelEntry& find_model(const std::string& name);

}  // namespace nacre

// What the files of this room share about registered models.
#pragma once

#include <string>

#include "nacre/model/builtin.h"

namespace nacre {

const ModelEntry& find_model(const std::string& name);  // throws UserError, with the nearest name

}  // namespace nacre

// What the files of this room share about registered models.
#pragma once

#include <string>
#include <vector>

#include "nacre/model/builtin.h"

namespace nacre {

const ModelEntry& find_model(const std::string& name);  // throws UserError, with the nearest name

// "did you mean 'gcn'? known: gat, gcn": the remedy for a name that is not in `known`.
std::string suggest(const std::string& given, const std::vector<std::string>& known);

}  // namespace nacre

// Descriptions of a data set that `nacre data info` prints.
#pragma once

#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

// Returns several lines for people.
std::string describe(const Dataset& dataset);
// Returns the same figures as one JSON object on one line.
std::string describe_json(const Dataset& dataset);

}  // namespace nacre

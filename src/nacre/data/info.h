// What `nacre data info` says about a data set.
#pragma once

#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

// Several lines for people.
std::string describe(const Dataset& dataset);
// The same figures as one JSON object on one line.
std::string describe_json(const Dataset& dataset);

}  // namespace nacre

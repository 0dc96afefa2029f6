// The checks behind validate() in dataset.h, for readers that must not touch every byte of a mapped file.
#pragma once

#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

enum class Depth {
  without_features,  // everything but the values of features, targets and edge weights
  everything,
};
void validate_parts(const Dataset& dataset, const std::string& where, Depth depth);

}  // namespace nacre

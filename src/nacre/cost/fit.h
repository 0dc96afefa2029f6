// Selects the timings that a cost model can learn from.
#pragma once

#include <vector>

#include "nacre/cost/model.h"

namespace nacre {

// Returns the samples with a positive, finite time and finite amounts that are not negative. Warns
// about the others, counted by reason.
std::vector<Timing> usable_samples(const std::vector<Timing>& samples);

}  // namespace nacre

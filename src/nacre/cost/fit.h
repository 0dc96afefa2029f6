// Which timings a model can learn from.
#pragma once

#include <vector>

#include "nacre/cost/model.h"

namespace nacre {

// Those with a positive, finite time and finite amounts that are not negative. A warning counts the
// others by reason.
std::vector<Timing> usable_samples(const std::vector<Timing>& samples);

}  // namespace nacre

// Estimates what training would take for data that are not loaded: plans are made on small random
// graphs of the same shape, and what they need is scaled up.
#pragma once

#include "nacre/train/bill.h"

namespace nacre {

// Returns bill_before_reading() with the values of a full-graph step or, for mini-batches, with the
// features of the largest batch that the sampler could draw. Plans are made by rules for the CPU.
Bill estimate_bill(const RunConfig& config, const DataSizes& sizes);

}  // namespace nacre

// What training would take of data that are not loaded: plans are made on small random graphs of the same shape, and
// what they need is scaled up.
#pragma once

#include "nacre/train/bill.h"

namespace nacre {

// bill_before_reading() with the values of a full-graph step; of mini-batches, with the features of the largest batches
// that the sampler could draw. On the CPU, with plans by rules.
Bill estimate_bill(const RunConfig& config, const DataSizes& sizes);

}  // namespace nacre

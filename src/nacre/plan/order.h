// Puts the kernels of a plan into an order that keeps less memory alive.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Returns the largest sum of bytes of stored values that are alive at any kernel of a step, in the
// order of the plan.
int64_t peak_live_bytes(const Plan& plan, const Blocks& blocks);

// The kernel at which most bytes are alive, and the values that are alive there.
struct LivePeak {
  size_t kernel = 0;
  std::vector<std::pair<NodeRef, int64_t>> values;  // values and their bytes, largest first
};
LivePeak live_at_peak(const Plan& plan, const Blocks& blocks);
std::string peak_text(const Plan& plan, const LivePeak& peak);

// Puts the kernels of a plan into an order in which the peak of the live bytes is lower; keeps the
// order if none is found. Any order that respects what kernels read is legal, because every value
// is written once. The search is greedy: of the kernels that could run next, it takes the one after
// which least is alive. So weight gradients run as soon as they can and free the activations that
// they were the last to read. This pass comes after lowering, because only then it is known what is
// stored.
void order_for_memory(Plan& plan, const Blocks& blocks);

}  // namespace nacre

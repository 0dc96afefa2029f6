// Puts the kernels of a plan into an order that keeps less memory alive.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Largest sum of bytes of stored values alive at any kernel of a step, in the plan's order.
int64_t peak_live_bytes(const Plan& plan, const Blocks& blocks);

// What is alive at that kernel.
struct LivePeak {
  size_t kernel = 0;
  std::vector<std::pair<NodeRef, int64_t>> values;  // bytes; largest first
};
LivePeak live_at_peak(const Plan& plan, const Blocks& blocks);
std::string peak_text(const Plan& plan, const LivePeak& peak);

// Any order that respects what kernels read is legal, since every value is written once. Greedy: of the kernels that
// could run next, take the one after which least is alive. Weight gradients then run as soon as they can and free the
// activations they were the last to read. Stands after lowering because only then it is known what is stored; kept only
// if it lowers the peak.
void order_for_memory(Plan& plan, const Blocks& blocks);

}  // namespace nacre

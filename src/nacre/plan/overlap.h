// Orders the kernels of a plan so that a rank computes while communication goes on.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Moves every communication kernel to where its operand is ready, and moves kernels that do not
// need its result in front of the first one that does, as long as the peak of the memory does not
// rise. The communication kernels keep their order, because all ranks must communicate in the same
// order.
void overlap_communication(Plan& plan, const Blocks& blocks);

// Returns, for each kernel, the kernel before which it must have ended. For a communication kernel
// with `overlap`, this is the first kernel that reads its result, or the end of the step. Any other
// kernel must have ended before the next one. If the first reader of a communication has early
// rows, they are computed before the communication ends.
std::vector<size_t> ends_of_kernels(const Plan& plan, bool overlap);

// Describes one action of a step: a kernel, one of the two halves of a communication, or one of the
// two parts of a kernel with early rows.
struct PlannedAction {
  enum class What : uint8_t { run, start, finish, early, rest };
  size_t kernel = 0;
  What what = What::run;
  friend bool operator==(const PlannedAction&, const PlannedAction&) = default;
};

// Returns what a step does, one action after the other. Without `overlap`, every communication ends
// where it starts, and all rows of a kernel are computed together.
std::vector<PlannedAction> step_actions(const Plan& plan, bool overlap);

}  // namespace nacre

// Orders the kernels of a plan so that a rank computes while communication goes on.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

// Moves every communication kernel to where its operand is ready, and moves kernels that do not
// need its result in front of the first one that does, as long as the peak of the memory stays. The
// order of the communication kernels stays, because it is that of all ranks.
void overlap_communication(Plan& plan, const Blocks& blocks);

}  // namespace nacre

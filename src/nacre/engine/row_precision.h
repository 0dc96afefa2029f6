// The ranks of a run agree here on the rows that travel as bf16.
#pragma once

#include "nacre/cluster/communicator.h"
#include "nacre/engine/step_forecast.h"

namespace nacre {

// Notes in each communication kernel of the plan which ranks store its rows as bf16
// (Kernel::narrow_ranks). All ranks call this at the same time, with plans of the same
// communication. A run in which no rank stores bf16 need not call it.
void agree_on_rows(Plan& plan, const RankPart& part, Communicator& ranks);

}  // namespace nacre

// Finds kernels that can compute some of their rows while rows of other ranks still travel.
#pragma once

#include <string>

#include "nacre/cost/nominal.h"
#include "nacre/plan/plan.h"

namespace nacre {

// Returns how many rows a kernel walks: the rows of its root, or the destinations of its edges.
int64_t walked_rows(const Plan& plan, const Kernel& kernel, const Blocks& blocks);

// Returns the seconds that one more start of the kernel takes.
double launch_seconds(const CostModel& model, const Kernel& kernel);

// Gives early rows to the kernels that wait for an exchange, where this pays by the prices
// (Kernel::early). Without prices, it gives them wherever that is possible. A kernel that waits and
// gets no early rows records the reason (EarlyPart::why). `gpu` means that the plan is for a GPU.
void choose_early_rows(Plan& plan, const Blocks& blocks, const NominalProfile* prices, bool gpu);

// Returns a line that says how many rows of a kernel are early, or why none are; empty if the
// kernel does not wait for rows of other ranks.
std::string early_rows_text(const Kernel& kernel);

}  // namespace nacre

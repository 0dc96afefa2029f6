// Decides which edge values are never stored but computed again by the kernels that read them (GT1:
// no edge-wise dense copies).
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/plan/analysis.h"
#include "nacre/plan/plan.h"

namespace nacre {

// Returns 1 for each node that is inlined into every reader. This is legal only for row-local
// operations on edges (and for typed products that a hand-written kernel absorbs) if all of their
// readers can compute them again. Values with few elements per row are stored all the same if a
// wide product reads them, because the fast aggregation kernels want their weights in memory, and
// so are dot products that a sum over the same edges computes (PlanOptions::join_dots). Sums
// over the edges of pairs that PlanOptions::keep_sums stores are not inlined.
NodeVector<char> choose_inlined(const Analysis& an, const PlanOptions& options);

}  // namespace nacre

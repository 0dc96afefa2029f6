// Decides which edge values are never stored but recomputed by the kernels that read them (GT1: no edge-wise dense
// copies).
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/plan/analysis.h"
#include "nacre/plan/plan.h"

namespace nacre {

// Per node: 1 if it is inlined into every reader. Legal only for row-local operations on edges (and typed products that
// a hand-written kernel absorbs) all of whose readers can recompute it. Values with few elements per row are stored all
// the same when a wide product reads them, since the fast aggregation kernels want their weights in memory.
// Sums over the edges of pairs that PlanOptions::keep_sums speaks of are not.
NodeVector<char> choose_inlined(const Analysis& an, const PlanOptions& options);

}  // namespace nacre

// Indexing swapping (WG5) where it needs no choice: work on edges that all edges of a vertex would
// repeat is done once per vertex. Forward, op(index(x)) becomes index(op(x)). Backward,
// index_add(op(g)) becomes op(index_add(g)) for a linear op, and sums over edges take the share of
// their vertex first. This is legal if the operation works row by row and draws no random numbers,
// and it pays if there are no more vertices than edges.
#pragma once

#include "nacre/dfg/dfg.h"
#include "nacre/kernel/blocks.h"

namespace nacre {

Dfg swap_indexing(const Dfg& dfg, const Blocks& blocks);

}  // namespace nacre

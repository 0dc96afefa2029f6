// Indexing swapping (WG5), where it needs no choice: work on edges that all edges of a vertex would repeat is done once
// per vertex. Forward, op(index(x)) becomes index(op(x)); backward, index_add(op(g)) becomes op(index_add(g)) for
// linear op, and sums over edges take their vertex's share first. Legal where the operation works row by row and draws
// no random numbers; worth it where there are no more vertices than edges.
#pragma once

#include "nacre/dfg/dfg.h"
#include "nacre/kernel/blocks.h"

namespace nacre {

Dfg swap_indexing(const Dfg& dfg, const Blocks& blocks);

}  // namespace nacre

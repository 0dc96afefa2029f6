// Orders vertices by how much their rows are wanted. Only files of this room include this header.
#pragma once

#include <span>

#include "nacre/graph/graph.h"

namespace nacre {

// Returns all vertices, those of the largest value first; vertices of equal value are in the order
// of their numbers. Values must not be negative. The sort is a parallel radix sort: its time is
// linear, and its result does not depend on the number of threads.
Array<NodeId> rank_vertices(std::span<const float> values);

// Returns the vertices 0, 1, … in ascending order, or in a random order that depends only on the
// seed.
Array<NodeId> vertices_in_order(int64_t count);
Array<NodeId> vertices_at_random(int64_t count, uint64_t seed);

}  // namespace nacre

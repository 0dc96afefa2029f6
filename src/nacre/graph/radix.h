// Groups keys stably with a parallel radix sort: linear in the number of keys, with the same result
// on any number of threads.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"

namespace nacre {

struct GroupedBy {
  Buffer<int64_t> offsets;  // groups + 1: where each group begins
  Buffer<EdgeId> order;     // positions of the keys, grouped by key, in input order within a group
};

// Groups `count` keys. Every key must be smaller than `groups`, and `count` smaller than 2^32.
GroupedBy group_stable(const NodeId* keys, int64_t count, int64_t groups);

}  // namespace nacre

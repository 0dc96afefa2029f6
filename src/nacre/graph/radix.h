// Stable grouping of keys by a parallel radix sort: linear in the number of keys, the same result on any thread count.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"

namespace nacre {

struct GroupedBy {
  Buffer<int64_t> offsets;  // groups + 1
  Buffer<EdgeId> order;     // positions of the keys, grouped by key, input order within a group
};

// keys[i] < groups; count < 2^32.
GroupedBy group_stable(const NodeId* keys, int64_t count, int64_t groups);

}  // namespace nacre

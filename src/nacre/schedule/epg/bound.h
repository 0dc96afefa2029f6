// lower_bound() returns a time that no schedule of an EPG can beat, whatever the placings and the
// order of the batches are.
#pragma once

#include <cstddef>
#include <vector>

#include "nacre/schedule/epg/placing.h"

namespace nacre {

struct LowerBound {
  double seconds = 0;  // the largest of the three bounds below
  double load = 0;     // bound by the work of the units, shared out as well as the placings allow
  double path = 0;     // bound by the longest chain of work of one batch
  double updates = 0;  // bound by batches that wait for each other's updates
};

// Returns the bound. For each batch, `placings` holds the placings that a schedule may choose. If a
// batch has more than `most` legal placings, they are not all listed. Then the bound of this batch
// comes from its operations instead, as if each ran on its best device and values travelled in no
// time, so that it holds for the placings that are not listed, too.
LowerBound lower_bound(const ExecutionPlanGraph& graph, const std::vector<std::vector<Placing>>& placings,
                       size_t most = kMostPlacings);

}  // namespace nacre

// lower_bound() returns a time that no schedule of an EPG can beat, whatever the placings and the
// order of the batches are.
#pragma once

#include <vector>

#include "nacre/schedule/epg/placing.h"

namespace nacre {

struct LowerBound {
  double seconds = 0;  // the largest of the three bounds below
  double load = 0;     // bound by the work of the units, shared out as well as the placings allow
  double path = 0;     // bound by the longest chain of work of one batch
  double updates = 0;  // bound by batches that wait for each other's updates
};

// Returns the bound. For each batch, `placings` holds all placings that a schedule may choose.
LowerBound lower_bound(const ExecutionPlanGraph& graph, const std::vector<std::vector<Placing>>& placings);

}  // namespace nacre

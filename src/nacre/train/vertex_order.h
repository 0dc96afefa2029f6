// VertexOrder: the order in which a run on the whole graph numbers the vertices (--reorder). Sums
// over neighbours read rows all over memory. If vertices that share neighbours have numbers close
// to each other, more of these rows are still in a cache. Only the run uses these numbers:
// predictions and embeddings come out in the order of the data set.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/backend.h"
#include "nacre/graph/reorder.h"
#include "nacre/plan/policy.h"
#include "nacre/train/run_data.h"

namespace nacre {

// With this value of --reorder, the run chooses by itself.
inline constexpr const char* kAutomaticOrder = "auto";

struct VertexOrder {
  Reorder how = Reorder::none;
  // Vertex order[i] of the data set is vertex i of the run. Empty if all vertices keep their
  // numbers.
  Array<NodeId> order;
  // The orders that choose_order() has compared by timing, with predicted seconds of a step; empty
  // if it has timed none.
  std::vector<Candidate> compared;
  SpaceGroup space;    // what the comparison looked at
  double seconds = 0;  // the time that choosing and finding the order took
};

// Holds what choose_order() needs to know of a run.
struct OrderQuestion {
  const RunData& run;
  const Dfg& dfg;  // the model with its gradient
  const Blocks& blocks;
  std::shared_ptr<Backend> backend;
  const PlanRequest& request;
};

// Returns the order that --reorder names, or that of the plan which is resumed or read from a file.
// With --reorder auto and a plan that is searched, times a sum over neighbours in the given order
// and in others, if that is likely to pay, and keeps the answer in the plan cache if it holds for
// longer runs. Throws UserError if --reorder names an order that this run cannot take.
VertexOrder choose_order(const OrderQuestion& question);

// Returns true if the comparison has found an order or has compared all orders. A run that has more
// time for comparing would then not look further.
bool holds_for_longer_runs(const VertexOrder& found);

}  // namespace nacre

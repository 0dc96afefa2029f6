// This file computes the features from which a performance model (cost/performance_model.h)
// predicts the time of a training step: features of the adjacency matrix (graph/features.h), widths
// of the model, and the work that the plan's kernels count (plan/work.h).
#pragma once

#include <vector>

#include "nacre/cost/performance_model.h"
#include "nacre/graph/features.h"
#include "nacre/model/model.h"
#include "nacre/plan/plan.h"

namespace nacre {

// Returns the names of all features, in the order of step_features().
std::vector<FeatureColumn> step_columns();

struct StepDescription {
  const ModelOptions& model;  // settings of the model, with sizes and defaults filled in
  const Plan& plan;
  const Blocks& blocks;
  int64_t own = 0;   // number of own vertices, the first sources; the others are the halo
  bool gpu = false;  // whether nominal rates of a GPU count, not those of the host
};
std::vector<double> step_features(const StepDescription& step);

// Says how many times as large a part becomes.
struct PartGrowth {
  double rows = 1;  // factor of own vertices, and of the edges that lead to them
  double halo = 1;
};
// Returns the features of a part of another size whose rows are like those of the part that
// `features` describe.
std::vector<double> scaled_features(std::vector<double> features, const PartGrowth& growth);
// Returns the feature that holds the nominal seconds of the counted work of a step.
double counted_seconds(const std::vector<double>& features);

}  // namespace nacre

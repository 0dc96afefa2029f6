// Metrics that score each class by itself and take the mean over the classes. Scores are logits
// [rows, classes]. If a node has a single label, classes are ranked by their softmax probabilities.
#pragma once

#include <span>

#include "nacre/data/dataset.h"

namespace nacre {

// Nodes, the scores of all nodes, and the data set that has the labels. Only labelled nodes count.
struct ScoredNodes {
  const Dataset& dataset;
  const float* scores;
  std::span<const NodeId> nodes;
};

// Returns the mean of F1 = 2·TP / (2·TP + FP + FN) over the classes that some node has or is
// predicted to have; NaN if there is no such class. A single label is predicted by the largest
// logit (the first of equal ones), several labels by positive logits.
double macro_f1(const ScoredNodes& nodes);
// Returns the mean of Σ (recall − last recall)·precision down the ranking, over the classes that
// some node has. Equal scores are taken together. NaN if there is no such class, or if a score is
// not a number.
double average_precision(const ScoredNodes& nodes);
// Returns the mean area under the ROC curve over the classes that some nodes have and others do not
// have. NaN if there is no such class, or if a score is not a number.
double ranked_auc(const ScoredNodes& nodes);

}  // namespace nacre

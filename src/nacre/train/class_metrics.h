// Metrics that look at each class by itself and take the mean over the classes. Scores are logits [rows, classes]; of
// single labels, classes are ranked by their softmax probabilities.
#pragma once

#include <span>

#include "nacre/data/dataset.h"

namespace nacre {

// The labelled ones of `nodes`, their scores, and which classes they have.
struct ScoredNodes {
  const Dataset& dataset;
  const float* scores;
  std::span<const NodeId> nodes;
};

// Mean of the classes' F1 = 2·TP / (2·TP + FP + FN), over the classes that some node has or is predicted to have. A
// single label is predicted by the largest logit (the first of equal ones), several by positive logits. NaN if there is
// no such class.
double macro_f1(const ScoredNodes& nodes);
// Mean over the classes that some node has of Σ (recall − last recall)·precision down the ranking; equal scores are
// taken together. NaN if there is no such class, or a score is not a number.
double average_precision(const ScoredNodes& nodes);
// The same of the area under the ROC curve, over the classes that have both answers.
double ranked_auc(const ScoredNodes& nodes);

}  // namespace nacre

// Metrics: they say how good predictions are. Scores are logits [rows, classes]; `nodes` are the
// vertices that count.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nacre/data/dataset.h"
#include "nacre/train/trainee.h"

namespace nacre {

// Returns the share of the labelled `nodes` whose largest score (the first of equal ones) is that
// of their label; NaN if none is labelled. A row with a NaN counts as wrong.
double accuracy(const float* scores, int64_t classes, std::span<const int32_t> labels, std::span<const NodeId> nodes);
// Returns 2·TP / (2·TP + FP + FN) over all pairs of a vertex and a class. A class is predicted if
// its logit is positive.
double micro_f1(const float* scores, const uint8_t* targets, int64_t classes, std::span<const NodeId> nodes);
// Returns the mean area under the ROC curve over the classes that some vertices have and others do
// not have; NaN if there is no such class. Ties count half.
double roc_auc(const float* scores, const uint8_t* targets, int64_t classes, std::span<const NodeId> nodes);

// Returns the value of a metric, given by its resolved name (see also class_metrics.h); NaN without
// labels.
double score(const std::string& metric, const Dataset& dataset, const float* scores, std::span<const NodeId> nodes);
// Returns the mean loss of the predictions over the labelled vertices of `nodes` (and over the
// classes, if a vertex may have several); NaN if there is none.
double mean_loss(const Dataset& dataset, const float* scores, std::span<const NodeId> nodes);
// Returns the metric of all splits and, if `with_loss`, the loss of the validation split.
Scores score_splits(const std::string& metric, const Dataset& dataset, const float* scores, bool with_loss);
// Returns the metric that "auto" stands for, or `metric` itself. Throws a UserError if the metric
// does not suit the labels.
std::string resolve_metric(const std::string& metric, const Dataset& dataset);

}  // namespace nacre

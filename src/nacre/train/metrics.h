// How good predictions are. Scores are logits [rows, classes]; `nodes` are the vertices that count.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nacre/data/dataset.h"
#include "nacre/train/trainee.h"

namespace nacre {

// Share of `nodes` whose largest score (the first of equal ones) is at their label; a row with NaN is wrong, unlabelled
// vertices are left out. NaN if none is labelled.
double accuracy(const float* scores, int64_t classes, std::span<const int32_t> labels, std::span<const NodeId> nodes);
// 2·TP / (2·TP + FP + FN) over all (vertex, class) pairs, predicting a class where its logit is positive.
double micro_f1(const float* scores, const uint8_t* targets, int64_t classes, std::span<const NodeId> nodes);
// Mean over the classes that have both answers of the area under the ROC curve; ties count half. NaN if there is none.
double roc_auc(const float* scores, const uint8_t* targets, int64_t classes, std::span<const NodeId> nodes);

// The metric of a data set by its resolved name (see also class_metrics.h). NaN without labels.
double score(const std::string& metric, const Dataset& dataset, const float* scores, std::span<const NodeId> nodes);
// The loss of the model's predictions, mean over the labelled vertices of `nodes` (and classes, for multi-label sets).
// NaN if there is none.
double mean_loss(const Dataset& dataset, const float* scores, std::span<const NodeId> nodes);
// Both, of all splits.
Scores score_splits(const std::string& metric, const Dataset& dataset, const float* scores, bool with_loss);
// `metric` "auto" resolved; throws UserError when the metric does not fit the labels.
std::string resolve_metric(const std::string& metric, const Dataset& dataset);

}  // namespace nacre

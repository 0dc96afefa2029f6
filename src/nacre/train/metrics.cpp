#include "nacre/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/train/class_metrics.h"

namespace nacre {

namespace {

struct Sums {
  double first = 0, second = 0, third = 0;
};

// Returns the sums of what `add` adds for each vertex. The vertices are summed in runs of a fixed
// length, so that the result is the same on any number of threads.
template <class Add>
Sums sum_over(std::span<const NodeId> nodes, const Add& add) {
  constexpr int64_t kRun = 1024;
  const int64_t count = std::ssize(nodes);
  std::vector<Sums> runs((count + kRun - 1) / kRun);
  parallel_for(count, kRun, [&](int64_t begin, int64_t end) {
    Sums sums;
    for (int64_t i = begin; i < end; ++i) add(nodes[i], sums);
    runs[begin / kRun] = sums;
  });
  Sums all;
  for (const Sums& run : runs) {
    all.first += run.first;
    all.second += run.second;
    all.third += run.third;
  }
  return all;
}

}  // namespace

double accuracy(const float* scores, int64_t classes, std::span<const int32_t> labels, std::span<const NodeId> nodes) {
  const Sums sums = sum_over(nodes, [&](NodeId v, Sums& s) {
    if (labels[v] < 0) return;
    const float* row = scores + static_cast<int64_t>(v) * classes;
    const bool known = std::none_of(row, row + classes, [](float x) { return std::isnan(x); });
    s.first += known && std::max_element(row, row + classes) - row == labels[v] ? 1 : 0;
    s.second += 1;
  });
  return sums.second == 0 ? NAN : sums.first / sums.second;
}

double micro_f1(const float* scores, const uint8_t* targets, int64_t classes, std::span<const NodeId> nodes) {
  const Sums sums = sum_over(nodes, [&](NodeId v, Sums& s) {
    const int64_t row = static_cast<int64_t>(v) * classes;
    int64_t hit = 0, predicted = 0, actual = 0;
    for (int64_t c = row; c < row + classes; ++c) {
      const bool yes = scores[c] > 0;
      hit += yes && targets[c] != 0 ? 1 : 0;
      predicted += yes ? 1 : 0;
      actual += targets[c] != 0 ? 1 : 0;
    }
    s.first += static_cast<double>(hit);
    s.second += static_cast<double>(predicted);
    s.third += static_cast<double>(actual);
  });
  return sums.second + sums.third == 0 ? NAN : 2 * sums.first / (sums.second + sums.third);
}

namespace {

// Returns the area under the ROC curve of class `c`: the probability that a vertex of the class has
// a higher score than another vertex. Ties count half. Returns NaN if all vertices, or none, are of
// the class.
double class_auc(const float* scores, const uint8_t* targets, int64_t classes, int64_t c,
                 std::span<const NodeId> nodes) {
  std::vector<std::pair<float, uint8_t>> ranked;
  ranked.reserve(nodes.size());
  for (const NodeId v : nodes) {
    const int64_t i = static_cast<int64_t>(v) * classes + c;
    ranked.emplace_back(scores[i], targets[i]);
  }
  std::sort(ranked.begin(), ranked.end());
  double positives = 0;
  double negatives = 0;
  double wins = 0;
  for (size_t i = 0; i < ranked.size();) {
    double tied_positive = 0;
    double tied_negative = 0;
    for (const float value = ranked[i].first; i < ranked.size() && ranked[i].first == value; ++i) {
      (ranked[i].second != 0 ? tied_positive : tied_negative) += 1;
    }
    wins += tied_positive * (negatives + tied_negative / 2);
    positives += tied_positive;
    negatives += tied_negative;
  }
  return positives == 0 || negatives == 0 ? NAN : wins / (positives * negatives);
}

}  // namespace

double roc_auc(const float* scores, const uint8_t* targets, int64_t classes, std::span<const NodeId> nodes) {
  for (const NodeId v : nodes) {
    const float* row = scores + static_cast<int64_t>(v) * classes;
    if (std::any_of(row, row + classes, [](float x) { return std::isnan(x); })) return NAN;
  }
  std::vector<double> areas(classes);
  parallel_tasks(classes, [&](int64_t c) { areas[c] = class_auc(scores, targets, classes, c, nodes); });
  double sum = 0;
  int counted = 0;
  for (const double area : areas) {
    if (std::isnan(area)) continue;
    sum += area;
    ++counted;
  }
  return counted == 0 ? NAN : sum / counted;
}

double score(const std::string& metric, const Dataset& dataset, const float* scores, std::span<const NodeId> nodes) {
  if (dataset.labels.empty() && !dataset.multilabel()) return NAN;
  if (metric == "macro_f1") return macro_f1({dataset, scores, nodes});
  if (metric == "average_precision") return average_precision({dataset, scores, nodes});
  // With single labels, every wrong prediction is one false positive and one false negative, so
  // micro-F1 equals the accuracy.
  if (metric == "accuracy" || (metric == "micro_f1" && !dataset.multilabel()))
    return accuracy(scores, dataset.num_classes, dataset.labels.span(), nodes);
  if (metric == "micro_f1") return micro_f1(scores, dataset.targets.data<uint8_t>(), dataset.num_classes, nodes);
  NACRE_CHECK(metric == "roc_auc", "unknown metric " + metric);
  if (!dataset.multilabel()) return ranked_auc({dataset, scores, nodes});
  return roc_auc(scores, dataset.targets.data<uint8_t>(), dataset.num_classes, nodes);
}

namespace {

double cross_entropy(const float* row, int64_t classes, int32_t label) {
  const double top = *std::max_element(row, row + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - top);
  return std::log(sum) + top - row[label];
}

double binary_cross_entropy(const float* row, int64_t classes, const uint8_t* targets) {
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const double z = row[c];
    sum += std::log1p(std::exp(-std::abs(z))) + std::max(z, 0.0) - (targets[c] != 0 ? z : 0);
  }
  return sum / static_cast<double>(classes);
}

}  // namespace

double mean_loss(const Dataset& dataset, const float* scores, std::span<const NodeId> nodes) {
  const int64_t classes = dataset.num_classes;
  const Sums sums = sum_over(nodes, [&](NodeId v, Sums& s) {
    const int64_t row = static_cast<int64_t>(v) * classes;
    if (dataset.multilabel()) {
      s.first += binary_cross_entropy(scores + row, classes, dataset.targets.data<uint8_t>() + row);
    } else if (!dataset.labels.empty() && dataset.labels[v] >= 0) {
      s.first += cross_entropy(scores + row, classes, dataset.labels[v]);
    } else {
      return;
    }
    s.second += 1;
  });
  return sums.second == 0 ? NAN : sums.first / sums.second;
}

Scores score_splits(const std::string& metric, const Dataset& d, const float* scores, bool with_loss) {
  Scores s;
  s.train = score(metric, d, scores, d.splits.train.span());
  s.val = score(metric, d, scores, d.splits.val.span());
  s.test = score(metric, d, scores, d.splits.test.span());
  if (with_loss) s.val_loss = mean_loss(d, scores, d.splits.val.span());
  return s;
}

std::string resolve_metric(const std::string& metric, const Dataset& dataset) {
  std::string name = metric == "auto" ? (dataset.multilabel() ? "micro_f1" : "accuracy") : metric;
  if (name == "ap") name = "average_precision";
  constexpr std::string_view known[] = {"accuracy", "micro_f1", "macro_f1", "roc_auc", "average_precision"};
  if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
    throw UserError("--metric", "unknown metric '" + metric + "'",
                    "choose auto, accuracy, micro_f1, macro_f1, roc_auc or average_precision");
  }
  if (name == "accuracy" && dataset.multilabel())
    throw UserError("--metric", "accuracy does not fit multi-label data", "use --metric auto");
  return name;
}

}  // namespace nacre

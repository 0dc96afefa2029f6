#include "nacre/train/class_metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

bool counts(const Dataset& d, NodeId v) { return d.multilabel() || d.labels[v] >= 0; }

bool has_class(const Dataset& d, NodeId v, int64_t c) {
  if (!d.multilabel()) return d.labels[v] == c;
  return d.targets.data<uint8_t>()[static_cast<int64_t>(v) * d.num_classes + c] != 0;
}

bool all_finite(const ScoredNodes& s) {
  const int64_t classes = s.dataset.num_classes;
  return std::all_of(s.nodes.begin(), s.nodes.end(), [&](NodeId v) {
    const float* row = s.scores + static_cast<int64_t>(v) * classes;
    return !counts(s.dataset, v) || std::all_of(row, row + classes, [](float x) { return std::isfinite(x); });
  });
}

// Returns log Σ e^score of the row of each node, so that ranking() ranks by probabilities. Returns
// zeros if nodes may have several classes, because logits are then ranked as they are.
std::vector<double> row_norms(const ScoredNodes& s) {
  std::vector<double> norms(s.nodes.size(), 0);
  if (s.dataset.multilabel()) return norms;
  const int64_t classes = s.dataset.num_classes;
  parallel_for(static_cast<int64_t>(s.nodes.size()), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* row = s.scores + static_cast<int64_t>(s.nodes[i]) * classes;
      const double top = *std::max_element(row, row + classes);
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - top);
      norms[i] = top + std::log(sum);
    }
  });
  return norms;
}

struct Ranked {
  float score;
  bool positive;
};

// Returns the nodes ranked by their score for class c, the best first.
std::vector<Ranked> ranking(const ScoredNodes& s, const std::vector<double>& norms, int64_t c) {
  std::vector<Ranked> list;
  list.reserve(s.nodes.size());
  for (size_t i = 0; i < s.nodes.size(); ++i) {
    const NodeId v = s.nodes[i];
    if (!counts(s.dataset, v)) continue;
    const double score = s.scores[static_cast<int64_t>(v) * s.dataset.num_classes + c];
    // Scores are rounded to single precision, so that probabilities that differ only by rounding
    // are equal.
    list.push_back({static_cast<float>(score - norms[i]), has_class(s.dataset, v, c)});
  }
  std::sort(list.begin(), list.end(), [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
  return list;
}

// Calls group(positives, negatives) for each run of equal scores, the best first.
void for_each_tie(const std::vector<Ranked>& list, FunctionRef<void(double, double)> group) {
  for (size_t i = 0; i < list.size();) {
    double positive = 0, negative = 0;
    for (const float score = list[i].score; i < list.size() && list[i].score == score; ++i)
      (list[i].positive ? positive : negative) += 1;
    group(positive, negative);
  }
}

double class_precision(const std::vector<Ranked>& list) {
  double positives = 0, taken = 0, sum = 0;
  for_each_tie(list, [&](double positive, double negative) {
    positives += positive;
    taken += positive + negative;
    sum += positive * positives / taken;
  });
  return positives == 0 ? NAN : sum / positives;
}

double class_area(const std::vector<Ranked>& list) {
  double positives = 0, negatives = 0, wins = 0;
  for_each_tie(list, [&](double positive, double negative) {
    wins += negative * (positives + positive / 2);
    positives += positive;
    negatives += negative;
  });
  return positives == 0 || negatives == 0 ? NAN : wins / (positives * negatives);
}

double mean_over_classes(const ScoredNodes& s, double (*of_class)(const std::vector<Ranked>&)) {
  if (!all_finite(s)) return NAN;
  const std::vector<double> norms = row_norms(s);
  std::vector<double> values(s.dataset.num_classes);
  parallel_tasks(s.dataset.num_classes, [&](int64_t c) { values[c] = of_class(ranking(s, norms, c)); });
  double sum = 0;
  int64_t counted = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++counted;
  }
  return counted == 0 ? NAN : sum / static_cast<double>(counted);
}

}  // namespace

double macro_f1(const ScoredNodes& s) {
  const int64_t classes = s.dataset.num_classes;
  struct Counts {
    int64_t hit = 0, predicted = 0, actual = 0;
  };
  std::vector<Counts> of_class(classes);
  for (const NodeId v : s.nodes) {
    if (!counts(s.dataset, v)) continue;
    const float* row = s.scores + static_cast<int64_t>(v) * classes;
    const bool known = std::none_of(row, row + classes, [](float x) { return std::isnan(x); });
    const int64_t top = std::max_element(row, row + classes) - row;
    for (int64_t c = 0; c < classes; ++c) {
      const bool yes = known && (s.dataset.multilabel() ? row[c] > 0 : c == top);
      const bool actual = has_class(s.dataset, v, c);
      Counts& n = of_class[c];
      n.hit += yes && actual ? 1 : 0;
      n.predicted += yes ? 1 : 0;
      n.actual += actual ? 1 : 0;
    }
  }
  double sum = 0;
  int64_t counted = 0;
  for (const Counts& n : of_class) {
    if (n.predicted + n.actual == 0) continue;
    sum += 2 * static_cast<double>(n.hit) / static_cast<double>(n.predicted + n.actual);
    ++counted;
  }
  return counted == 0 ? NAN : sum / static_cast<double>(counted);
}

double average_precision(const ScoredNodes& nodes) { return mean_over_classes(nodes, class_precision); }

double ranked_auc(const ScoredNodes& nodes) { return mean_over_classes(nodes, class_area); }

}  // namespace nacre

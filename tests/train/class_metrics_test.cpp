// Compares metrics of single classes with definitions written out in full.
#include "nacre/train/class_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/fixtures.h"
#include "nacre/train/metrics.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

struct Case {
  Dataset data;
  std::vector<float> scores;
  std::vector<NodeId> nodes;
};

Case random_case(uint64_t seed, int64_t rows, int64_t classes, bool multilabel) {
  Rng rng(seed);
  Case c;
  c.data.num_classes = classes;
  std::vector<int32_t> labels;
  if (multilabel) c.data.targets = Tensor::zeros(DType::u8, {rows, classes});
  for (int64_t i = 0; i < rows; ++i) {
    labels.push_back(static_cast<int32_t>(rng.below(classes + 1) - 1));
    if (rng.below(4) != 0) c.nodes.push_back(static_cast<NodeId>(i));
    for (int64_t k = 0; k < classes; ++k) {
      c.scores.push_back(static_cast<float>(rng.below(7) - 3) / 2);  // ties are everywhere
      if (multilabel) c.data.targets.data<uint8_t>()[i * classes + k] = static_cast<uint8_t>(rng.below(3) == 0);
    }
  }
  if (!multilabel) c.data.labels = std::move(labels);
  return c;
}

// Returns the probability (or the logit, for several labels) and the truth of class k for every
// labelled node.
std::vector<std::pair<double, bool>> of_class(const Case& c, int64_t k) {
  std::vector<std::pair<double, bool>> list;
  const int64_t classes = c.data.num_classes;
  for (const NodeId v : c.nodes) {
    const float* row = c.scores.data() + v * classes;
    if (c.data.multilabel()) {
      list.emplace_back(row[k], c.data.targets.data<uint8_t>()[v * classes + k] != 0);
    } else if (c.data.labels[v] >= 0) {
      double sum = 0;
      for (int64_t j = 0; j < classes; ++j) sum += std::exp(static_cast<double>(row[j]));
      list.emplace_back(row[k] - std::log(sum), c.data.labels[v] == k);
    }
  }
  return list;
}

constexpr double kSame = 1e-9;  // scores this close are tied

double plain_precision(const Case& c) {
  double sum = 0;
  int counted = 0;
  for (int64_t k = 0; k < c.data.num_classes; ++k) {
    const auto list = of_class(c, k);
    double positives = 0, area = 0;
    for (const auto& [score, yes] : list) positives += yes ? 1 : 0;
    if (positives == 0) continue;
    // Every positive counts the precision at its own score.
    for (const auto& [score, yes] : list) {
      if (!yes) continue;
      double above = 0, right = 0;
      for (const auto& [other, truth] : list) {
        if (other < score - kSame) continue;
        above += 1;
        right += truth ? 1 : 0;
      }
      area += right / above;
    }
    sum += area / positives;
    ++counted;
  }
  return counted == 0 ? NAN : sum / counted;
}

double plain_auc(const Case& c) {
  double sum = 0;
  int counted = 0;
  for (int64_t k = 0; k < c.data.num_classes; ++k) {
    const auto list = of_class(c, k);
    double wins = 0, pairs = 0;
    for (const auto& [a, yes] : list) {
      for (const auto& [b, no] : list) {
        if (!yes || no) continue;
        pairs += 1;
        wins += std::abs(a - b) < kSame ? 0.5 : a > b ? 1 : 0;
      }
    }
    if (pairs == 0) continue;
    sum += wins / pairs;
    ++counted;
  }
  return counted == 0 ? NAN : sum / counted;
}

double plain_macro_f1(const Case& c) {
  double sum = 0;
  int counted = 0;
  const int64_t classes = c.data.num_classes;
  for (int64_t k = 0; k < classes; ++k) {
    double tp = 0, fp = 0, fn = 0;
    for (const NodeId v : c.nodes) {
      const float* row = c.scores.data() + v * classes;
      if (!c.data.multilabel() && c.data.labels[v] < 0) continue;
      const bool yes = c.data.multilabel() ? row[k] > 0 : std::max_element(row, row + classes) - row == k;
      const bool truth =
          c.data.multilabel() ? c.data.targets.data<uint8_t>()[v * classes + k] != 0 : c.data.labels[v] == k;
      tp += yes && truth ? 1 : 0;
      fp += yes && !truth ? 1 : 0;
      fn += !yes && truth ? 1 : 0;
    }
    if (tp + fp + fn == 0) continue;
    const double precision = tp + fp == 0 ? 0 : tp / (tp + fp), recall = tp + fn == 0 ? 0 : tp / (tp + fn);
    sum += precision + recall == 0 ? 0 : 2 * precision * recall / (precision + recall);
    ++counted;
  }
  return counted == 0 ? NAN : sum / counted;
}

TEST(ClassMetrics, FollowTheirDefinitions) {
  for (const bool multilabel : {false, true}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const Case c = random_case(seed, 40, 2 + static_cast<int64_t>(seed % 4), multilabel);
      const ScoredNodes nodes{c.data, c.scores.data(), c.nodes};
      EXPECT_NEAR(macro_f1(nodes), plain_macro_f1(c), 1e-12);
      EXPECT_NEAR(average_precision(nodes), plain_precision(c), 1e-9);
      EXPECT_NEAR(ranked_auc(nodes), plain_auc(c), 1e-9);
      EXPECT_EQ(score("macro_f1", c.data, c.scores.data(), c.nodes), macro_f1(nodes));
      EXPECT_EQ(score("average_precision", c.data, c.scores.data(), c.nodes), average_precision(nodes));
      EXPECT_NEAR(score("roc_auc", c.data, c.scores.data(), c.nodes), plain_auc(c), 1e-9);
    }
  }
}

TEST(ClassMetrics, Corners) {
  Case c = random_case(3, 20, 3, false);
  EXPECT_EQ(score("micro_f1", c.data, c.scores.data(), c.nodes), score("accuracy", c.data, c.scores.data(), c.nodes));
  EXPECT_TRUE(std::isnan(macro_f1({c.data, c.scores.data(), {}})));
  EXPECT_TRUE(std::isnan(average_precision({c.data, c.scores.data(), {}})));
  c.scores[0] = NAN;
  c.nodes = {0, 1, 2};
  std::vector<int32_t> labels(20, 0);
  c.data.labels = std::move(labels);
  EXPECT_TRUE(std::isnan(average_precision({c.data, c.scores.data(), c.nodes})));
  EXPECT_LE(macro_f1({c.data, c.scores.data(), c.nodes}), 1);
}

TEST(ClassMetrics, NamesAreResolved) {
  const Case single = random_case(1, 10, 3, false), multi = random_case(1, 10, 3, true);
  EXPECT_EQ(resolve_metric("ap", single.data), "average_precision");
  for (const char* name : {"micro_f1", "macro_f1", "roc_auc", "average_precision"}) {
    EXPECT_EQ(resolve_metric(name, single.data), name);
    EXPECT_EQ(resolve_metric(name, multi.data), name);
  }
  EXPECT_USER_ERROR(resolve_metric("accuracy", multi.data), "does not fit multi-label");
  EXPECT_USER_ERROR(resolve_metric("f1", single.data), "unknown metric");
}

}  // namespace
}  // namespace nacre::test

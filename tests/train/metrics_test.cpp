// Compares metrics with definitions written out in full.
#include "nacre/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "data/fixtures.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

struct Sample {
  int64_t rows;
  int64_t classes;
  std::vector<float> scores;
  std::vector<int32_t> labels;  // -1 means unlabelled
  std::vector<uint8_t> targets;
  std::vector<NodeId> nodes;  // the rows that are scored: some of them, the last one first
};

// Scores come from a handful of values, so that ties are everywhere.
Sample random_sample(uint64_t seed, int64_t rows, int64_t classes) {
  Rng rng(seed);
  Sample s{rows, classes, {}, {}, {}, {}};
  for (int64_t i = 0; i < rows * classes; ++i) {
    s.scores.push_back(static_cast<float>(rng.below(5) - 2) / 2);
    s.targets.push_back(static_cast<uint8_t>(rng.below(3) == 0));
  }
  for (int64_t i = 0; i < rows; ++i) {
    s.labels.push_back(static_cast<int32_t>(rng.below(classes + 1) - 1));
    if (rng.below(3) != 0) s.nodes.push_back(static_cast<NodeId>(rows - 1 - i));
  }
  return s;
}

double plain_accuracy(const Sample& s) {
  int right = 0;
  int all = 0;
  for (const NodeId v : s.nodes) {
    if (s.labels[v] < 0) continue;
    int64_t best = 0;
    for (int64_t c = 0; c < s.classes; ++c) {
      if (s.scores[v * s.classes + c] > s.scores[v * s.classes + best]) best = c;
    }
    right += best == s.labels[v] ? 1 : 0;
    ++all;
  }
  return all == 0 ? NAN : static_cast<double>(right) / all;
}

double plain_f1(const Sample& s) {
  double tp = 0;
  double fp = 0;
  double fn = 0;
  for (const NodeId v : s.nodes) {
    for (int64_t c = 0; c < s.classes; ++c) {
      const bool yes = 1 / (1 + std::exp(-s.scores[v * s.classes + c])) > 0.5;
      const bool truth = s.targets[v * s.classes + c] != 0;
      tp += yes && truth ? 1 : 0;
      fp += yes && !truth ? 1 : 0;
      fn += !yes && truth ? 1 : 0;
    }
  }
  return tp + fp + fn == 0 ? NAN : 2 * tp / (2 * tp + fp + fn);
}

// Goes through every pair of a positive and a negative: a point for the right order, half a point
// for a tie.
double plain_auc(const Sample& s) {
  double sum = 0;
  int counted = 0;
  for (int64_t c = 0; c < s.classes; ++c) {
    double points = 0;
    double pairs = 0;
    for (const NodeId p : s.nodes) {
      for (const NodeId n : s.nodes) {
        if (s.targets[p * s.classes + c] == 0 || s.targets[n * s.classes + c] != 0) continue;
        const float a = s.scores[p * s.classes + c];
        const float b = s.scores[n * s.classes + c];
        points += a > b ? 1 : a == b ? 0.5 : 0;
        ++pairs;
      }
    }
    if (pairs == 0) continue;
    sum += points / pairs;
    ++counted;
  }
  return counted == 0 ? NAN : sum / counted;
}

void expect_same(double got, double want, const std::string& what) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << what;
  } else {
    EXPECT_NEAR(got, want, 1e-12) << what;
  }
}

TEST(Metrics, AgreeWithBruteForce) {
  uint64_t seed = 0;
  for (const int64_t rows : {1, 2, 3, 17, 120}) {
    for (const int64_t classes : {1, 2, 5}) {
      const Sample s = random_sample(++seed, rows, classes);
      const std::string what = std::to_string(rows) + " x " + std::to_string(classes);
      expect_same(accuracy(s.scores.data(), classes, s.labels, s.nodes), plain_accuracy(s), "accuracy " + what);
      expect_same(micro_f1(s.scores.data(), s.targets.data(), classes, s.nodes), plain_f1(s), "micro_f1 " + what);
      expect_same(roc_auc(s.scores.data(), s.targets.data(), classes, s.nodes), plain_auc(s), "roc_auc " + what);
    }
  }
}

TEST(Metrics, NothingToCountIsNotANumber) {
  Sample s = random_sample(5, 9, 3);
  EXPECT_TRUE(std::isnan(accuracy(s.scores.data(), 3, s.labels, {})));
  EXPECT_TRUE(std::isnan(micro_f1(s.scores.data(), s.targets.data(), 3, {})));
  EXPECT_TRUE(std::isnan(roc_auc(s.scores.data(), s.targets.data(), 3, {})));
  std::fill(s.labels.begin(), s.labels.end(), -1);
  EXPECT_TRUE(std::isnan(accuracy(s.scores.data(), 3, s.labels, s.nodes)));
}

TEST(Metrics, ClassesWithOneAnswerAreLeftOutOfTheArea) {
  // Class 0 is perfect, class 1 always true, class 2 never true.
  const std::vector<float> scores = {1, 3, 5, -1, 2, 5, 2, 1, 5};
  const std::vector<uint8_t> targets = {1, 1, 0, 0, 1, 0, 1, 1, 0};
  const std::vector<NodeId> nodes = {0, 1, 2};
  EXPECT_DOUBLE_EQ(roc_auc(scores.data(), targets.data(), 3, nodes), 1);
  const std::vector<NodeId> positives = {0, 2};
  EXPECT_TRUE(std::isnan(roc_auc(scores.data(), targets.data(), 3, positives)));
}

TEST(Metrics, NoPositiveAnywhereHasNoF1) {
  const std::vector<float> scores(6, -1);
  const std::vector<uint8_t> targets(6, 0);
  const std::vector<NodeId> nodes = {0, 1, 2};
  EXPECT_TRUE(std::isnan(micro_f1(scores.data(), targets.data(), 2, nodes)));
}

TEST(Metrics, NanScoresAreNeverRight) {
  const std::vector<NodeId> nodes = {0, 1, 2};
  const std::vector<float> scores = {NAN, 0, 1, NAN, 2, 1};
  EXPECT_NEAR(accuracy(scores.data(), 2, std::vector<int32_t>{0, 0, 0}, nodes), 1.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(accuracy(scores.data(), 2, std::vector<int32_t>{1, 1, 1}, nodes), 0);
  const std::vector<uint8_t> targets = {1, 0, 0, 1, 1, 1};
  EXPECT_DOUBLE_EQ(micro_f1(scores.data(), targets.data(), 2, nodes), 2.0 * 2 / (3 + 4));
  EXPECT_TRUE(std::isnan(roc_auc(scores.data(), targets.data(), 2, nodes)));
}

TEST(Metrics, LossIsTheMeanNegativeLogLikelihood) {
  const Sample s = random_sample(8, 23, 4);
  Dataset d;
  d.num_classes = 4;
  d.labels = s.labels;
  double want = 0;
  int counted = 0;
  for (const NodeId v : s.nodes) {
    if (s.labels[v] < 0) continue;
    double sum = 0;
    for (int c = 0; c < 4; ++c) sum += std::exp(double{s.scores[v * 4 + static_cast<size_t>(c)]});
    want -= std::log(std::exp(double{s.scores[v * 4 + static_cast<size_t>(s.labels[v])]}) / sum);
    ++counted;
  }
  EXPECT_NEAR(mean_loss(d, s.scores.data(), s.nodes), want / counted, 1e-12);
  EXPECT_TRUE(std::isnan(mean_loss(d, s.scores.data(), {})));
  d.labels = {};
  EXPECT_TRUE(std::isnan(mean_loss(d, s.scores.data(), s.nodes)));

  d.targets = Tensor(DType::u8, {23, 4});
  std::copy(s.targets.begin(), s.targets.end(), d.targets.data<uint8_t>());
  want = 0;
  for (const NodeId v : s.nodes) {
    for (size_t i = v * 4; i < v * 4 + 4; ++i) {
      const double p = 1 / (1 + std::exp(-s.scores[i]));
      want -= std::log(s.targets[i] != 0 ? p : 1 - p);
    }
  }
  EXPECT_NEAR(mean_loss(d, s.scores.data(), s.nodes), want / (4.0 * static_cast<double>(s.nodes.size())), 1e-7);

  const std::vector<float> large = {1000, -1000};
  Dataset two;
  two.num_classes = 2;
  two.labels = std::vector<int32_t>{1};
  EXPECT_NEAR(mean_loss(two, large.data(), std::vector<NodeId>{0}), 2000, 1e-9) << "no overflow";
}

Dataset labelled(bool multilabel) {
  Dataset d;
  d.num_classes = 2;
  if (multilabel) {
    d.targets = Tensor::zeros(DType::u8, {3, 2});
  } else {
    d.labels = std::vector<int32_t>{0, 1, 0};
  }
  return d;
}

TEST(Metrics, ResolveToWhatTheLabelsAllow) {
  EXPECT_EQ(resolve_metric("auto", labelled(false)), "accuracy");
  EXPECT_EQ(resolve_metric("auto", labelled(true)), "micro_f1");
  EXPECT_EQ(resolve_metric("roc_auc", labelled(true)), "roc_auc");
  EXPECT_USER_ERROR(resolve_metric("f1", labelled(true)), "--metric");
  EXPECT_USER_ERROR(resolve_metric("accuracy", labelled(true)), "multi-label");
}

TEST(Metrics, UnlabelledDataHaveNoScore) {
  Dataset d;
  d.num_classes = 2;
  const std::vector<float> scores(6, 1);
  const std::vector<NodeId> nodes = {0, 2};
  EXPECT_TRUE(std::isnan(score("accuracy", d, scores.data(), nodes)));
}

}  // namespace
}  // namespace nacre::test

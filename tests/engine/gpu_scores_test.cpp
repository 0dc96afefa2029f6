// Compares scores counted on a GPU with the definitions written out for the host. They must be
// equal, not just near.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "device/gpu.h"
#include "nacre/engine/gpu/scores.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  int64_t rows, classes;
  std::vector<float> logits;
  std::vector<int32_t> labels;
  std::vector<uint8_t> targets;
  std::vector<std::vector<NodeId>> lists;
};

// Returns a case whose logits have only a handful of values, so that ties are everywhere; some are
// NaN or infinite. Each of its three lists has about a fifth of the rows, the last one first.
Case random_case(uint64_t seed, int64_t rows, int64_t classes) {
  Rng rng(seed);
  Case c{rows, classes, {}, {}, {}, std::vector<std::vector<NodeId>>(3)};
  for (int64_t i = 0; i < rows * classes; ++i) {
    const auto kind = rng.below(200);
    const float value = static_cast<float>(rng.below(5) - 2) / 2;
    c.logits.push_back(kind == 0                  ? NAN
                       : kind == 1                ? -kInf
                       : kind == 2                ? kInf
                       : value == 0 && kind < 100 ? -0.0F
                                                  : value);
    c.targets.push_back(static_cast<uint8_t>(rng.below(3) == 0));
  }
  for (int64_t i = 0; i < rows; ++i) {
    c.labels.push_back(static_cast<int32_t>(rng.below(classes + 1) - 1));
    const auto list = rng.below(5);
    if (list < 3) c.lists[static_cast<size_t>(list)].push_back(static_cast<NodeId>(rows - 1 - i));
  }
  return c;
}

ScoreCounts single_counts(const Case& c, const std::vector<NodeId>& list) {
  ScoreCounts counts;
  for (const NodeId v : list) {
    if (c.labels[v] < 0) continue;
    const auto row = c.logits.begin() + static_cast<int64_t>(v) * c.classes;
    const bool known = std::none_of(row, row + c.classes, [](float x) { return std::isnan(x); });
    counts.hits += known && std::max_element(row, row + c.classes) - row == c.labels[v] ? 1 : 0;
    counts.first += 1;
  }
  return counts;
}

ScoreCounts multiple_counts(const Case& c, const std::vector<NodeId>& list) {
  ScoreCounts counts;
  for (const NodeId v : list) {
    for (int64_t i = v * c.classes; i < (v + 1) * c.classes; ++i) {
      const bool yes = c.logits[static_cast<size_t>(i)] > 0, truth = c.targets[static_cast<size_t>(i)] != 0;
      counts.hits += yes && truth ? 1 : 0;
      counts.first += yes ? 1 : 0;
      counts.second += truth ? 1 : 0;
    }
  }
  return counts;
}

double row_loss(const Case& c, NodeId v, bool multiple) {
  const float* row = c.logits.data() + static_cast<int64_t>(v) * c.classes;
  double sum = 0;
  if (!multiple) {
    double top = row[0];
    for (int64_t i = 1; i < c.classes; ++i) top = std::fmax(top, row[i]);
    for (int64_t i = 0; i < c.classes; ++i) sum += std::exp(row[i] - top);
    return std::log(sum) + top - row[c.labels[v]];
  }
  for (int64_t i = 0; i < c.classes; ++i) {
    const double z = row[i];
    sum += std::log1p(std::exp(-std::abs(z))) + std::max(z, 0.0) - (c.targets[v * c.classes + i] != 0 ? z : 0);
  }
  return sum / static_cast<double>(c.classes);
}

class GpuScoresTest : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (plugin_ == nullptr || IsSkipped()) return;
    context_ = std::make_shared<GpuContext>(GpuCompiler::open(*plugin_, plugin_->open(0, 0)),
                                            std::make_shared<GraphViews>(), GpuOptions{});
  }

  template <class T>
  std::shared_ptr<void> upload(const std::vector<T>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    auto memory = context_->allocate(bytes);
    if (bytes > 0) context_->device().upload(memory.get(), values.data(), bytes);
    return memory;
  }

  // Checks with labels of all vertices, or only of those in the lists.
  void expect_counts(const Case& c, bool multiple, bool by_vertex) {
    std::vector<std::span<const NodeId>> lists(c.lists.begin(), c.lists.end());
    std::vector<int32_t> labels;
    std::vector<uint8_t> targets;
    for (const std::vector<NodeId>& list : c.lists) {
      for (const NodeId v : list) {
        labels.push_back(c.labels[v]);
        targets.insert(targets.end(), c.targets.begin() + v * c.classes, c.targets.begin() + (v + 1) * c.classes);
      }
    }
    GpuScores scores(context_, lists, 1, c.classes);
    const auto device_labels =
        multiple ? upload(by_vertex ? c.targets : targets) : upload(by_vertex ? c.labels : labels);
    scores.start({multiple ? cuda::ScoreLabels::multiple : cuda::ScoreLabels::single, device_labels.get(), by_vertex});
    const auto logits = upload(c.logits);
    ScoreLoss loss;
    const std::vector<ScoreCounts> with = scores.run(static_cast<const float*>(logits.get()), &loss);
    const std::vector<ScoreCounts> got = scores.run(static_cast<const float*>(logits.get()), nullptr);
    ASSERT_EQ(got.size(), 3U);
    ASSERT_EQ(with.size(), 3U);
    for (size_t l = 0; l < 3; ++l) {
      const ScoreCounts want = multiple ? multiple_counts(c, c.lists[l]) : single_counts(c, c.lists[l]);
      EXPECT_EQ(got[l].hits, want.hits) << l;
      EXPECT_EQ(got[l].first, want.first) << l;
      EXPECT_EQ(got[l].second, want.second) << l;
      EXPECT_EQ(with[l].hits, want.hits) << l;
    }
    double sum = 0, counted = 0;
    for (const NodeId v : c.lists[1]) {
      if (!multiple && c.labels[v] < 0) continue;
      sum += row_loss(c, v, multiple);
      counted += 1;
    }
    EXPECT_EQ(loss.counted, counted);
    if (std::isfinite(sum)) {
      EXPECT_NEAR(loss.sum, sum, 1e-12 * std::max(1.0, std::abs(sum)));
    } else {
      EXPECT_FALSE(std::isfinite(loss.sum));
    }
  }

  std::shared_ptr<GpuContext> context_;
};

TEST_F(GpuScoresTest, AreTheHostsExactly) {
  uint64_t seed = 0;
  for (const int64_t rows : {1, 40, 1700}) {
    for (const int64_t classes : {1, 2, 7, 64, 65, 349}) {
      if (rows * classes > 120000) continue;
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(classes));
      const Case c = random_case(++seed, rows, classes);
      expect_counts(c, false, true);
      expect_counts(c, true, false);
      if (HasFailure()) return;
    }
  }
  const Case c = random_case(++seed, 900, 5);
  expect_counts(c, false, false);
  expect_counts(c, true, true);
}

TEST_F(GpuScoresTest, FiniteLossesAreTheHosts) {
  Case c = random_case(77, 1500, 11);
  for (float& x : c.logits) x = std::isfinite(x) ? x : 3;
  expect_counts(c, false, true);
  expect_counts(c, true, true);
}

TEST_F(GpuScoresTest, EmptyListsCountNothing) {
  Case c = random_case(5, 30, 3);
  c.lists = {{}, {}, {}};
  expect_counts(c, false, true);
  expect_counts(c, true, true);
}

}  // namespace
}  // namespace nacre::test

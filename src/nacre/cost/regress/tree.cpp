// Every column's samples are kept in ascending order of their values. The samples of a node are a
// run [begin, end) of every column's order, and splitting the node splits each run without changing
// the order, so that nothing is sorted twice.
#include "nacre/cost/regress/tree.h"

#include <algorithm>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

struct Split {
  int feature = -1;
  double threshold = 0;
  int64_t left = 0;  // samples that go left
  double gain = 0;
};

class Growth {
 public:
  Growth(const SampleTable& samples, std::span<const double> targets, std::span<const double> weights,
         const TreeOptions& options)
      : samples_(samples), targets_(targets), weights_(weights), options_(options), left_(samples.rows(), 0) {}

  std::vector<TreeNode> run(const std::vector<std::vector<int32_t>>& order) {
    order_.resize(order.size());
    for (size_t c = 0; c < order.size(); ++c) {
      std::copy_if(order[c].begin(), order[c].end(), std::back_inserter(order_[c]),
                   [&](int32_t i) { return weights_[i] > 0; });
    }
    // A table without features also gets one list, which holds the samples.
    if (order_.empty()) {
      order_.emplace_back();
      for (int64_t i = 0; i < samples_.rows(); ++i) {
        if (weights_[i] > 0) order_[0].push_back(static_cast<int32_t>(i));
      }
    }
    grow(0, static_cast<int64_t>(order_[0].size()), 0);
    return std::move(nodes_);
  }

 private:
  double value(int64_t sample, int feature) const { return samples_.x[sample * samples_.columns + feature]; }

  // Appends the node of a run of samples and everything below it. Returns the place of the node in
  // nodes_.
  int grow(int64_t begin, int64_t end, int depth) {
    const auto place = static_cast<int>(nodes_.size());
    double weight = 0;
    double sum = 0;
    double squares = 0;
    for (int64_t k = begin; k < end; ++k) {
      const int32_t i = order_[0][k];
      weight += weights_[i];
      sum += weights_[i] * targets_[i];
      squares += weights_[i] * targets_[i] * targets_[i];
    }
    nodes_.push_back({.value = sum / weight});
    const double spread = squares - sum * sum / weight;
    if (place == 0) root_spread_ = spread;
    constexpr double pure = 1e-12;
    if (depth >= options_.depth || end - begin < 2 * options_.leaf || spread <= pure * root_spread_) return place;
    const Split split = best_split(begin, end, weight, sum);
    if (split.feature < 0 || split.gain <= pure * root_spread_) return place;
    const int64_t middle = divide(begin, end, split);
    nodes_[place].feature = split.feature;
    nodes_[place].threshold = split.threshold;
    const int left = grow(begin, middle, depth + 1);
    const int right = grow(middle, end, depth + 1);
    nodes_[place].left = left;
    nodes_[place].right = right;
    return place;
  }

  // Returns the features that the next split chooses from.
  std::vector<int> candidates() {
    std::vector<int> features(samples_.columns);
    std::iota(features.begin(), features.end(), 0);
    const auto count = static_cast<size_t>(options_.features);
    if (count == 0 || count >= features.size()) return features;
    for (size_t k = 0; k < count; ++k) {
      const uint32_t random = philox(options_.seed, nodes_.size(), k)[0];
      std::swap(features[k], features[k + random % (features.size() - k)]);
    }
    features.resize(count);
    return features;
  }

  Split best_split(int64_t begin, int64_t end, double weight, double sum) {
    Split best;
    for (const int feature : candidates()) {
      const std::vector<int32_t>& order = order_[feature];
      double left_weight = 0;
      double left_sum = 0;
      for (int64_t k = begin; k + 1 < end; ++k) {
        const int32_t i = order[k];
        left_weight += weights_[i];
        left_sum += weights_[i] * targets_[i];
        const double here = value(i, feature);
        const double next = value(order[k + 1], feature);
        const int64_t count = k + 1 - begin;
        if (here == next || count < options_.leaf || end - begin - count < options_.leaf) continue;
        const double right_weight = weight - left_weight;
        const double right_sum = sum - left_sum;
        const double gain =
            left_sum * left_sum / left_weight + right_sum * right_sum / right_weight - sum * sum / weight;
        if (gain <= best.gain) continue;
        // The mean of two neighbouring numbers may be rounded up to the larger one. Then the
        // smaller one is the threshold.
        const double mean = here + (next - here) / 2;
        best = {feature, mean < next ? mean : here, count, gain};
      }
    }
    return best;
  }

  // Splits the run [begin, end) of every column's order. Returns where the samples that go right
  // begin.
  int64_t divide(int64_t begin, int64_t end, const Split& split) {
    const std::vector<int32_t>& sorted = order_[split.feature];
    for (int64_t k = begin; k < end; ++k) left_[sorted[k]] = k - begin < split.left ? 1 : 0;
    for (std::vector<int32_t>& order : order_) {
      std::stable_partition(order.begin() + begin, order.begin() + end, [&](int32_t i) { return left_[i] != 0; });
    }
    return begin + split.left;
  }

  const SampleTable& samples_;
  std::span<const double> targets_;
  std::span<const double> weights_;
  const TreeOptions& options_;
  std::vector<std::vector<int32_t>> order_;
  std::vector<char> left_;  // for each sample of the node being split: whether it goes left
  std::vector<TreeNode> nodes_;
  double root_spread_ = 0;
};

}  // namespace

double RegressionTree::predict(std::span<const double> features) const {
  const TreeNode* node = nodes_.data();
  while (node->feature >= 0) {
    node = nodes_.data() + (features[node->feature] <= node->threshold ? node->left : node->right);
  }
  return node->value;
}

TreeGrower::TreeGrower(const SampleTable& samples) : samples_(samples), order_(samples.columns) {
  for (int64_t c = 0; c < samples.columns; ++c) {
    order_[c].resize(samples.rows());
    std::iota(order_[c].begin(), order_[c].end(), 0);
    std::stable_sort(order_[c].begin(), order_[c].end(),
                     [&](int32_t a, int32_t b) { return samples.row(a)[c] < samples.row(b)[c]; });
  }
}

RegressionTree TreeGrower::grow(std::span<const double> targets, std::span<const double> weights,
                                const TreeOptions& options) const {
  NACRE_CHECK(std::any_of(weights.begin(), weights.end(), [](double w) { return w > 0; }), "a tree needs samples");
  return RegressionTree(Growth(samples_, targets, weights, options).run(order_));
}

}  // namespace nacre

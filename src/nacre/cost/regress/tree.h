// RegressionTree (CART): asks one feature after another whether it is at most a threshold, and
// answers with the mean target of the samples that gave the same answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/cost/regress/samples.h"

namespace nacre {

struct TreeNode {
  int feature = -1;      // the feature that is compared; -1 in a leaf
  double threshold = 0;  // samples whose feature is at most this go left
  int left = 0;          // numbers of the two nodes below; they come after this node
  int right = 0;
  double value = 0;  // answer of a leaf
};

class RegressionTree {
 public:
  RegressionTree() = default;
  explicit RegressionTree(std::vector<TreeNode> nodes) : nodes_(std::move(nodes)) {}
  double predict(std::span<const double> features) const;
  const std::vector<TreeNode>& nodes() const { return nodes_; }

 private:
  std::vector<TreeNode> nodes_;  // the first node is the root; never empty once grown
};

struct TreeOptions {
  int depth = 24;
  int64_t leaf = 2;      // fewest samples of a leaf
  int64_t features = 0;  // features that each split chooses from, drawn at random; 0 = all
  uint64_t seed = 0;
};

// Grows trees on the features of one table. The constructor sorts every column once.
class TreeGrower {
 public:
  explicit TreeGrower(const SampleTable& samples);

  // Grows a tree that minimises the weighted squared error. Samples of weight 0 are left out; at
  // least one weight must be positive.
  RegressionTree grow(std::span<const double> targets, std::span<const double> weights,
                      const TreeOptions& options) const;

 private:
  const SampleTable& samples_;
  std::vector<std::vector<int32_t>> order_;  // for each column, the samples by ascending value
};

}  // namespace nacre

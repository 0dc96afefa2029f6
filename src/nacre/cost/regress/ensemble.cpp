#include "nacre/cost/regress/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

// Returns a number of a regressor's state as a whole number in [low, high). Throws a UserError that
// names `where` if it is none.
int whole(double number, int64_t low, int64_t high, const std::string& where) {
  if (!(number >= static_cast<double>(low) && number < static_cast<double>(high)) || number != std::floor(number)) {
    throw UserError(where, fmt::format("holds the number {} where one in [{}, {}) belongs", number, low, high));
  }
  return static_cast<int>(number);
}

}  // namespace

double TreeEnsemble::predict(std::span<const double> features) const {
  double sum = base_;
  for (size_t t = 0; t < trees_.size(); ++t) sum += weights_[t] * trees_[t].predict(features);
  return sum;
}

void TreeEnsemble::reset(int64_t columns, double base) {
  columns_ = columns;
  base_ = base;
  trees_.clear();
  weights_.clear();
}

void TreeEnsemble::add(RegressionTree tree, double weight) {
  trees_.push_back(std::move(tree));
  weights_.push_back(weight);
}

NumberLists TreeEnsemble::state() const {
  NumberLists state = {{"columns", {static_cast<double>(columns_)}}, {"base", {base_}}, {"weights", weights_}};
  for (const char* list : {"sizes", "feature", "threshold", "left", "right", "value"}) state[list];
  for (const RegressionTree& tree : trees_) {
    state["sizes"].push_back(static_cast<double>(tree.nodes().size()));
    for (const TreeNode& node : tree.nodes()) {
      state["feature"].push_back(node.feature);
      state["threshold"].push_back(node.threshold);
      state["left"].push_back(node.left);
      state["right"].push_back(node.right);
      state["value"].push_back(node.value);
    }
  }
  return state;
}

void TreeEnsemble::restore(const NumberLists& state, const std::string& where) {
  constexpr int64_t many = 1 << 30;
  reset(whole(state_list(state, "columns", 1, where)[0], 0, many, where), state_list(state, "base", 1, where)[0]);
  const std::vector<double>& sizes = state_list(state, "sizes", -1, where);
  const std::vector<double>& weights = state_list(state, "weights", static_cast<int64_t>(sizes.size()), where);
  int64_t total = 0;
  for (const double size : sizes) total += whole(size, 1, many, where);
  const std::vector<double>& feature = state_list(state, "feature", total, where);
  const std::vector<double>& threshold = state_list(state, "threshold", total, where);
  const std::vector<double>& left = state_list(state, "left", total, where);
  const std::vector<double>& right = state_list(state, "right", total, where);
  const std::vector<double>& value = state_list(state, "value", total, where);
  int64_t first = 0;
  for (size_t t = 0; t < sizes.size(); ++t) {
    const auto size = static_cast<int64_t>(sizes[t]);
    std::vector<TreeNode> nodes(size);
    for (int64_t k = 0; k < size; ++k) {
      const int64_t i = first + k;
      nodes[k] = {.feature = whole(feature[i], -1, columns_, where), .threshold = threshold[i], .value = value[i]};
      if (nodes[k].feature < 0) continue;
      // Nodes lead to later nodes only, so every walk ends.
      nodes[k].left = whole(left[i], k + 1, size, where);
      nodes[k].right = whole(right[i], k + 1, size, where);
    }
    add(RegressionTree(std::move(nodes)), weights[t]);
    first += size;
  }
}

std::vector<double> draw_counts(std::span<const double> chances, uint64_t seed, uint64_t stream) {
  std::vector<double> until(chances.size());
  double sum = 0;
  for (size_t i = 0; i < chances.size(); ++i) until[i] = sum += chances[i];
  std::vector<double> counts(chances.size(), 0.0);
  for (size_t k = 0; k < chances.size(); ++k) {
    const PhiloxBlock random = philox(seed, stream, k);
    const double at = uniform01(random[0], random[1]) * sum;
    const size_t i = std::upper_bound(until.begin(), until.end(), at) - until.begin();
    ++counts[std::min(i, chances.size() - 1)];
  }
  return counts;
}

}  // namespace nacre

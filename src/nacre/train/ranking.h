// Ranking metrics: they say how good recommendations are. Every user is recommended the k items
// with the largest scores (dot products of embeddings) among those that the user did not take in
// training; of equal scores the smaller id comes first. If `held` are the items held out for the
// user, and hit(r) says whether the item at rank r = 0 … k−1 is one of them,
//   recall@k = Σ hit(r) / |held|
//   ndcg@k   = Σ hit(r)/log2(r+2) / Σ_{r < min(k, |held|)} 1/log2(r+2).
// Both are averaged over the users who have held-out items. An item that is both taken and held out
// cannot be recommended, and counts in |held|.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nacre/train/recommend_batches.h"

namespace nacre {

// Refers to row-major embeddings of users and items.
struct Embeddings {
  const float* users = nullptr;
  const float* items = nullptr;
  int64_t width = 0;
};

inline constexpr NodeId kNoItem = std::numeric_limits<NodeId>::max();

// Returns the k best items of each of `users`, k numbers for each user; kNoItem if there are fewer.
// An item whose score is not a number is never recommended.
std::vector<NodeId> best_items(const Embeddings& embeddings, const UserItems& taken, std::span<const NodeId> users,
                               int64_t k);
// Returns the bytes that best_items() takes to find `k` items for each of `users` users among
// `items` items, if embeddings have `width` columns. The result of best_items() is included.
int64_t best_items_bytes(int64_t users, int64_t items, int64_t width, int64_t k);

struct RankingScores {
  double recall = std::numeric_limits<double>::quiet_NaN();  // NaN when no user has held-out items
  double ndcg = std::numeric_limits<double>::quiet_NaN();
  int64_t users = 0;  // number of users who have held-out items
};
RankingScores score_ranking(const Embeddings& embeddings, const UserItems& taken, const UserItems& held, int64_t k);

// Names a ranking metric, for example "recall@20" or "ndcg@10".
struct RankingMetric {
  bool ndcg = false;
  int64_t k = 20;
  std::string name() const { return (ndcg ? "ndcg@" : "recall@") + std::to_string(k); }
  double of(const RankingScores& scores) const { return ndcg ? scores.ndcg : scores.recall; }
};
// Returns the metric of that name; "auto" is recall@20. Throws a UserError that names --metric.
RankingMetric parse_ranking_metric(const std::string& metric);

}  // namespace nacre

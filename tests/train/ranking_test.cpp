// Compares ranking metrics with brute force, and tests the batches that recommenders are trained
// on.
#include "nacre/train/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Returns random items of every user. User 0 has none, and user 1 has all.
UserItems random_items(int64_t users, int64_t items, int64_t most, uint64_t seed) {
  Rng rng(seed);
  UserItems result;
  result.num_items = items;
  for (int64_t u = 0; u < users; ++u) {
    std::set<NodeId> own;
    const int64_t wanted = u == 0 ? 0 : rng.below(most + 1);
    for (int64_t i = 0; i < wanted; ++i) own.insert(static_cast<NodeId>(rng.below(items)));
    for (int64_t i = 0; u == 1 && i < items; ++i) own.insert(static_cast<NodeId>(i));
    result.items.insert(result.items.end(), own.begin(), own.end());
    result.ptr.push_back(result.size());
  }
  return result;
}

// Returns whole numbers, so that there are many ties and sums are exact in any order.
std::vector<float> whole_numbers(int64_t size, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(size));
  for (float& v : values) v = static_cast<float>(rng.below(5) - 2);
  return values;
}

struct Case {
  int64_t users, items, width;
  UserItems taken = random_items(users, items, 12, 1);
  UserItems held = random_items(users, items, 6, 2);
  std::vector<float> user_rows = whole_numbers(users * width, 3);
  std::vector<float> item_rows = whole_numbers(items * width, 4);

  Embeddings embeddings() const { return {user_rows.data(), item_rows.data(), width}; }
  double score(int64_t u, int64_t i) const {
    double sum = 0;
    for (int64_t k = 0; k < width; ++k)
      sum += double{user_rows[static_cast<size_t>(u * width + k)]} * item_rows[static_cast<size_t>(i * width + k)];
    return sum;
  }
  std::vector<NodeId> best(int64_t u, int64_t k) const {
    std::vector<NodeId> order;
    for (int64_t i = 0; i < items; ++i) {
      if (!taken.has(u, static_cast<NodeId>(i)) && !std::isnan(score(u, i))) order.push_back(static_cast<NodeId>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return score(u, a) > score(u, b); });
    order.resize(static_cast<size_t>(k), kNoItem);
    return order;
  }
};

std::vector<NodeId> all_users(const Case& c) {
  std::vector<NodeId> users(static_cast<size_t>(c.users));
  std::iota(users.begin(), users.end(), NodeId{0});
  return users;
}

TEST(Ranking, best_items_are_those_of_brute_force) {
  for (const auto& [users, items, k] : {std::tuple<int64_t, int64_t, int64_t>{70, 2500, 20}, {33, 15, 20}, {5, 1, 3}}) {
    Case c{users, items, 7};
    c.item_rows[0] = NAN;  // an item with NaN is never recommended
    const std::vector<NodeId> got = best_items(c.embeddings(), c.taken, all_users(c), k);
    for (int64_t u = 0; u < users; ++u) {
      EXPECT_EQ(std::vector<NodeId>(got.begin() + u * k, got.begin() + (u + 1) * k), c.best(u, k))
          << "user " << u << " of " << users << " with " << items << " items";
    }
    const Threads three(3);
    EXPECT_EQ(best_items(c.embeddings(), c.taken, all_users(c), k), got);
  }
}

TEST(Ranking, metrics_are_those_of_brute_force) {
  for (const int64_t k : {1, 5, 40}) {
    const Case c{50, 30, 6};
    double recall = 0, ndcg = 0;
    int64_t counted = 0;
    for (int64_t u = 0; u < c.users; ++u) {
      const auto held = c.held.of(u);
      if (held.empty()) continue;
      const std::vector<NodeId> best = c.best(u, k);
      double hits = 0, gain = 0, ideal = 0;
      for (size_t r = 0; r < best.size(); ++r) {
        const bool hit = std::count(held.begin(), held.end(), best[r]) > 0;
        hits += hit ? 1 : 0;
        gain += hit ? std::log(2) / std::log(static_cast<double>(r) + 2) : 0;
        ideal += r < held.size() ? std::log(2) / std::log(static_cast<double>(r) + 2) : 0;
      }
      recall += hits / static_cast<double>(held.size());
      ndcg += gain / ideal;
      ++counted;
    }
    const RankingScores got = score_ranking(c.embeddings(), c.taken, c.held, k);
    EXPECT_EQ(got.users, counted);
    EXPECT_LT(got.users, c.users);
    EXPECT_NEAR(got.recall, recall / static_cast<double>(counted), 1e-12);
    EXPECT_NEAR(got.ndcg, ndcg / static_cast<double>(counted), 1e-12);
  }
}

// Checks by hand a user with three held-out items at ranks 0 and 2, for k = 3.
TEST(Ranking, definition_by_hand) {
  UserItems taken, held;
  taken.num_items = held.num_items = 5;
  taken.ptr = {0, 1};
  taken.items = {4};  // this item would be first
  held.ptr = {0, 3};
  held.items = {0, 2, 3};
  const std::vector<float> user = {1}, items = {9, 8, 7, 1, 10};  // the order is 0, 1, 2, 3
  const RankingScores s = score_ranking({user.data(), items.data(), 1}, taken, held, 3);
  EXPECT_NEAR(s.recall, 2.0 / 3, 1e-15);
  EXPECT_NEAR(s.ndcg, (1 + 0.5) / (1 + 1 / std::log2(3.0) + 0.5), 1e-15);
}

TEST(Ranking, nobody_to_ask_is_nan) {
  Case c{4, 3, 2};
  c.held = {3, {0, 0, 0, 0, 0}, {}};
  EXPECT_TRUE(std::isnan(score_ranking(c.embeddings(), c.taken, c.held, 20).recall));
}

TEST(Ranking, metrics_by_name) {
  EXPECT_EQ(parse_ranking_metric("auto").name(), "recall@20");
  EXPECT_EQ(parse_ranking_metric("ndcg@5").name(), "ndcg@5");
  for (const char* bad :
       {"accuracy", "recall", "recall@", "recall@0", "recall@-1", "ndcg@5x", "ndcg@99999999999999999999"})
    EXPECT_USER_ERROR(parse_ranking_metric(bad), "does not score recommendations");
}

constexpr UserItemSides kSides{2, 40, 50, 25};  // vertices before, between and after
constexpr int64_t kVertices = 80;

struct Triple {
  NodeId user, taken, other;
};

std::vector<Triple> epoch_triples(TripleBatches& batches, uint64_t epoch) {
  batches.begin_epoch(epoch);
  std::vector<Triple> triples;
  for (int64_t b = 0; b < batches.num_batches(); ++b) {
    const Graph block = batches.block(b);
    EXPECT_EQ(block.num_src(), kVertices);
    EXPECT_EQ(block.num_dst(), batches.batch_size());
    for (int64_t t = 0; t < batches.counted(b); ++t) {
      EXPECT_EQ(block.row_ptr()[t], 3 * t);
      const NodeId* at = block.col_idx().data() + 3 * t;
      triples.push_back({at[0] - kSides.first_user, at[1] - kSides.first_item, at[2] - kSides.first_item});
    }
  }
  return triples;
}

TEST(Triples, every_pair_comes_once_with_an_item_not_taken) {
  const UserItems taken = random_items(40, 25, 30, 5);
  for (const int64_t size : {1, 7, 64, 100000}) {
    TripleBatches batches(taken, kSides, kVertices, {size, 3, Positives::pairs});
    EXPECT_LE(batches.batch_size(), kVertices);
    for (const uint64_t epoch : {0, 1}) {
      std::set<std::pair<NodeId, NodeId>> pairs;
      for (const Triple& t : epoch_triples(batches, epoch)) {
        EXPECT_TRUE(taken.has(t.user, t.taken));
        EXPECT_LT(t.other, 25U);
        EXPECT_FALSE(taken.has(t.user, t.other));
        EXPECT_TRUE(pairs.emplace(t.user, t.taken).second);
      }
      EXPECT_EQ(static_cast<int64_t>(pairs.size()), taken.size() - 25);  // user 1 took everything
    }
  }
}

TEST(Triples, depend_on_seed_and_epoch_only) {
  const UserItems taken = random_items(40, 25, 12, 6);
  for (const Positives positives : {Positives::users, Positives::pairs}) {
    const auto sources = [&](uint64_t seed, uint64_t epoch) {
      TripleBatches batches(taken, kSides, kVertices, {16, seed, positives});
      std::vector<NodeId> flat;
      for (const Triple& t : epoch_triples(batches, epoch)) flat.insert(flat.end(), {t.user, t.taken, t.other});
      return flat;
    };
    const std::vector<NodeId> first = sources(1, 2);
    EXPECT_NE(sources(1, 3), first);
    EXPECT_NE(sources(2, 2), first);
    const Threads three(3);
    EXPECT_EQ(sources(1, 2), first);
  }
}

// Whatever they took, users and then their items come up equally often: chi-square with 37 degrees
// of freedom (40 users without those who took nothing or everything) exceeds 80 once in 10^4.
TEST(Triples, users_count_alike) {
  const UserItems taken = random_items(40, 25, 30, 5);
  TripleBatches batches(taken, kSides, kVertices, {64, 3, Positives::users});
  std::vector<double> by_user(40, 0);
  std::map<std::pair<NodeId, NodeId>, double> by_pair;
  double drawn = 0;
  for (uint64_t epoch = 0; epoch < 60; ++epoch) {
    for (const Triple& t : epoch_triples(batches, epoch)) {
      ASSERT_TRUE(taken.has(t.user, t.taken));
      ASSERT_FALSE(taken.has(t.user, t.other));
      ++by_user[t.user];
      ++by_pair[{t.user, t.taken}];
      ++drawn;
    }
  }
  double users = 0, chi = 0, pair_chi = 0, pairs = 0;
  for (int64_t u = 0; u < 40; ++u) users += !taken.of(u).empty() && taken.of(u).size() < 25 ? 1 : 0;
  for (int64_t u = 0; u < 40; ++u) {
    const auto items = taken.of(u);
    if (items.empty() || items.size() == 25) {
      EXPECT_EQ(by_user[static_cast<size_t>(u)], 0);
      continue;
    }
    chi += std::pow(by_user[static_cast<size_t>(u)] - drawn / users, 2) / (drawn / users);
    const double each = drawn / users / static_cast<double>(items.size());
    for (const NodeId i : items) pair_chi += std::pow(by_pair[{static_cast<NodeId>(u), i}] - each, 2) / each;
    pairs += static_cast<double>(items.size());
  }
  EXPECT_LT(chi, 80);
  // The sum may exceed its mean by at most four standard deviations.
  EXPECT_LT(pair_chi, pairs + 4 * std::sqrt(2 * pairs));
}

// The free items of a user come up equally often: chi-square with 19 degrees of freedom exceeds 50
// once in 10^4.
TEST(Triples, other_items_are_uniform) {
  UserItems taken;
  taken.num_items = 25;
  taken.ptr = {0, 5};
  taken.items = {0, 3, 4, 11, 24};
  TripleBatches batches(taken, {0, 1, 1, 25}, 26, {5, 9});
  std::vector<double> seen(25, 0);
  constexpr int kEpochs = 800;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    batches.begin_epoch(static_cast<uint64_t>(epoch));
    const Graph block = batches.block(0);
    for (int64_t t = 0; t < 5; ++t) ++seen[block.col_idx()[3 * t + 2] - 1];
  }
  double chi = 0;
  for (NodeId i = 0; i < 25; ++i) {
    if (taken.has(0, i)) continue;
    const double expected = 5.0 * kEpochs / 20;
    chi += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  EXPECT_LT(chi, 50);
}

// Among 30,000 items, one is free: draws give up and count.
TEST(Triples, the_only_free_item_is_found) {
  UserItems taken;
  taken.num_items = 30000;
  for (NodeId i = 0; i < 30000; ++i) {
    if (i != 17001) taken.items.push_back(i);
  }
  taken.ptr = {0, taken.size()};
  TripleBatches batches(taken, {0, 1, 1, 30000}, 30001, {8, 1});
  batches.begin_epoch(0);
  const Graph block = batches.block(0);
  for (int64_t t = 0; t < 8; ++t) EXPECT_EQ(block.col_idx()[3 * t + 2], 17002U);
}

}  // namespace
}  // namespace nacre::test

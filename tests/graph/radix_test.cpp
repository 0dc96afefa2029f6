#include "nacre/graph/radix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "nacre/base/parallel.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

void expect_grouped(const std::vector<NodeId>& keys, int64_t groups) {
  const GroupedBy got = group_stable(keys.data(), static_cast<int64_t>(keys.size()), groups);
  std::vector<EdgeId> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](EdgeId a, EdgeId b) { return keys[a] < keys[b]; });
  ASSERT_EQ(got.order.size(), static_cast<int64_t>(keys.size()));
  EXPECT_TRUE(std::equal(order.begin(), order.end(), got.order.data()))
      << keys.size() << " keys, " << groups << " groups";
  ASSERT_EQ(got.offsets.size(), groups + 1);
  std::vector<int64_t> offsets(static_cast<size_t>(groups) + 1, 0);
  for (const NodeId key : keys) ++offsets[static_cast<size_t>(key) + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  EXPECT_TRUE(std::equal(offsets.begin(), offsets.end(), got.offsets.data()))
      << keys.size() << " keys, " << groups << " groups";
}

std::vector<NodeId> random_keys(int64_t count, int64_t groups, uint64_t seed) {
  Rng rng(seed);
  std::vector<NodeId> keys(static_cast<size_t>(count));
  for (NodeId& key : keys) key = static_cast<NodeId>(rng.below(groups));
  return keys;
}

TEST(GroupStable, IsAStableSort) {
  // The numbers of groups are near whole digits, the numbers of keys near whole chunks.
  for (const int64_t groups : {1, 2, 3, 2047, 2048, 2049, 5000000}) {
    for (const int64_t count : {0, 1, 2, 1000}) expect_grouped(random_keys(count, groups, 3), groups);
  }
  for (const int64_t count : {(1 << 19) - 1, 1 << 19, (1 << 20) + 7})
    expect_grouped(random_keys(count, 100000, 4), 100000);
}

TEST(GroupStable, TakesSortedReversedAndEqualKeys) {
  std::vector<NodeId> keys(3000);
  std::iota(keys.begin(), keys.end(), 0U);
  expect_grouped(keys, 3000);
  std::reverse(keys.begin(), keys.end());
  expect_grouped(keys, 3000);
  expect_grouped(std::vector<NodeId>(700000, 4), 9);
  expect_grouped({}, 0);
}

TEST(GroupStable, IsTheSameOnAnyNumberOfThreads) {
  const std::vector<NodeId> keys = random_keys(1300000, 70000, 5);
  set_num_threads(1);
  const GroupedBy one = group_stable(keys.data(), 1300000, 70000);
  set_num_threads(4);
  const GroupedBy four = group_stable(keys.data(), 1300000, 70000);
  set_num_threads(2);
  EXPECT_TRUE(std::equal(one.order.data(), one.order.data() + one.order.size(), four.order.data()));
  EXPECT_TRUE(std::equal(one.offsets.data(), one.offsets.data() + one.offsets.size(), four.offsets.data()));
}

}  // namespace
}  // namespace nacre::test

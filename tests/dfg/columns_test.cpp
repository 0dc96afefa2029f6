// Tests how columns are dealt out to ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "nacre/dfg/columns.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

using Bounds = std::vector<int64_t>;

Bounds bounds(int64_t width, const std::vector<double>& shares) { return column_bounds(width, shares); }

TEST(ColumnBounds, FollowShares) {
  EXPECT_EQ(bounds(256, {1, 1}), (Bounds{0, 128, 256}));
  EXPECT_EQ(bounds(256, {1, 2, 4}), (Bounds{0, 36, 108, 256}));  // bounds are multiples of four
  // There are too few columns for multiples of four.
  EXPECT_EQ(bounds(10, {1, 1, 1}), (Bounds{0, 3, 7, 10}));
  EXPECT_EQ(bounds(10, {0, 1, 0, 1, 0}), (Bounds{0, 0, 5, 5, 10, 10}));
  EXPECT_EQ(bounds(1, {1, 1, 1}), (Bounds{0, 0, 1, 1}));  // there are more ranks than columns
  EXPECT_EQ(bounds(7, {3}), (Bounds{0, 7}));
  EXPECT_EQ(bounds(7, {}), (Bounds{0, 7}));
  EXPECT_EQ(bounds(7, {0, 0}), (Bounds{0, 7, 7}));
}

TEST(ColumnBounds, CoverAllColumnsOnce) {
  Rng rng(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<double> shares(1 + rng.below(9));
    for (double& share : shares) share = rng.below(4) == 0 ? 0 : rng.uniform(0, 3);
    const auto width = static_cast<int64_t>(1 + rng.below(300));
    const Bounds got = bounds(width, shares);
    const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
    ASSERT_EQ(got.size(), shares.size() + 1);
    EXPECT_EQ(got.front(), 0);
    EXPECT_EQ(got.back(), width);
    for (size_t r = 0; r < shares.size() && total > 0; ++r) {
      const double want = static_cast<double>(width) * shares[r] / total;
      EXPECT_LE(got[r], got[r + 1]);
      EXPECT_LE(std::abs(static_cast<double>(got[r + 1] - got[r]) - want), 4.01) << width << " columns, rank " << r;
      EXPECT_TRUE(shares[r] > 0 || got[r] == got[r + 1]) << width << " columns, rank " << r;
    }
  }
}

}  // namespace
}  // namespace nacre::test

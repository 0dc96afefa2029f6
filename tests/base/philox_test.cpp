#include "nacre/base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace nacre {
namespace {

// Known answers that were published with the generator (Random123, kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter and key are digits of pi: 243f6a88 85a308d3 13198a2e 03707344, a4093822 299f31d0.
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryBitOfKeyAndCounterCounts) {
  std::set<PhiloxBlock> seen = {philox(0, 0, 0)};
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t b = uint64_t{1} << bit;
    EXPECT_TRUE(seen.insert(philox(b, 0, 0)).second) << bit;
    EXPECT_TRUE(seen.insert(philox(0, b, 0)).second) << bit;
    EXPECT_TRUE(seen.insert(philox(0, 0, b)).second) << bit;
  }
}

TEST(MixKey, DependsOnBothWordsAndTheirOrder) {
  EXPECT_EQ(mix_key(1, 2), mix_key(1, 2));
  std::set<uint64_t> seen;
  for (uint64_t a = 0; a < 100; ++a) {
    for (uint64_t b = 0; b < 100; ++b) EXPECT_TRUE(seen.insert(mix_key(a, b)).second) << a << " " << b;
  }
}

TEST(Uniform01, StaysBelowOne) {
  EXPECT_EQ(uniform01(0U), 0.0F);
  EXPECT_LT(uniform01(0xFFFFFFFFU), 1.0F);
  EXPECT_EQ(uniform01(0U, 0U), 0.0);
  EXPECT_LT(uniform01(0xFFFFFFFFU, 0xFFFFFFFFU), 1.0);
  EXPECT_EQ(uniform01(0x80000000U), 0.5F);
  EXPECT_EQ(uniform01(0x80000000U, 0U), 0.5);
}

TEST(Uniform01, HasTheMomentsOfTheUniformDistribution) {
  constexpr int n = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    const PhiloxBlock block = philox(42, 0, static_cast<uint64_t>(i));
    const double u = uniform01(block[0], block[1]);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 4 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 4 * std::sqrt(4.0 / 45 / n));
}

}  // namespace
}  // namespace nacre

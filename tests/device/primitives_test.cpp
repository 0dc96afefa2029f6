// Compares sorting, sums and selection on the device with the standard library.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "device/gpu.h"
#include "nacre/base/error.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

const int64_t kSizes[] = {0, 1, 2, 31, 257, 4097, 300'001};

class PrimitivesTest : public GpuTest {
 protected:
  // There are few distinct keys, so that stability matters. Bits above `bits` are noise that must
  // be ignored.
  template <class Key>
  void check_sort(int64_t n, int bits) {
    Rng rng(static_cast<uint64_t>(n * 100 + bits));
    const Key mask = bits == static_cast<int>(8 * sizeof(Key)) ? static_cast<Key>(-1) : (Key{1} << bits) - 1;
    std::vector<Key> keys(static_cast<size_t>(n));
    for (Key& key : keys) {
      const auto low = static_cast<Key>(rng.below(n / 3 + 2));
      const auto high = static_cast<Key>(rng.below(int64_t{1} << 31)) << (8 * sizeof(Key) - 31);
      key = low ^ high;
    }
    std::vector<uint32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0U);
    const DeviceArray<Key> there(*device_, keys);
    const DeviceArray<uint32_t> values(*device_, order);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return (keys[a] & mask) < (keys[b] & mask); });
    device_->sort_pairs(there.data(), values.data(), n, bits);
    EXPECT_EQ(values.values(), order) << n << " keys by " << bits << " bits";
    std::vector<Key> sorted;
    sorted.reserve(order.size());
    for (const uint32_t i : order) sorted.push_back(keys[i]);
    EXPECT_EQ(there.values(), sorted) << n << " keys by " << bits << " bits";
  }
};

TEST_F(PrimitivesTest, SortsPairs) {
  for (const int64_t n : kSizes) {
    for (const int bits : {0, 1, 8, 13, 32}) check_sort<uint32_t>(n, bits);
    for (const int bits : {0, 3, 33, 48, 64}) check_sort<uint64_t>(n, bits);
  }
  EXPECT_THROW(check_sort<uint32_t>(10, 33), InternalError);
}

TEST_F(PrimitivesTest, SumsBeyond32Bits) {
  for (const int64_t n : kSizes) {
    Rng rng(static_cast<uint64_t>(n));
    std::vector<uint32_t> in(static_cast<size_t>(n));
    for (uint32_t& x : in) x = static_cast<uint32_t>(rng.below(int64_t{1} << 32));
    std::vector<int64_t> expected(in.size() + 1, 0);
    for (size_t i = 0; i < in.size(); ++i) expected[i + 1] = expected[i] + in[i];
    const DeviceArray<uint32_t> there(*device_, in);
    const DeviceArray<int64_t> out(*device_, n + 1);
    device_->exclusive_sum(there.data(), out.data(), n);
    EXPECT_EQ(out.values(), expected) << n;
  }
}

TEST_F(PrimitivesTest, FindsPositions) {
  for (const int64_t n : kSizes) {
    for (const double share : {0.0, 0.01, 0.5, 1.0}) {
      Rng rng(static_cast<uint64_t>(n));
      std::vector<uint8_t> flags(static_cast<size_t>(n));
      std::vector<uint32_t> expected;
      for (size_t i = 0; i < flags.size(); ++i) {
        if (rng.uniform() >= share) continue;
        flags[i] = static_cast<uint8_t>(1 + rng.below(255));
        expected.push_back(static_cast<uint32_t>(i));
      }
      const DeviceArray<uint8_t> there(*device_, flags);
      const DeviceArray<uint32_t> out(*device_, n);
      ASSERT_EQ(device_->positions_of(there.data(), out.data(), n), static_cast<int64_t>(expected.size()));
      auto found = out.values();
      found.resize(expected.size());
      EXPECT_EQ(found, expected) << n << ", share " << share;
    }
  }
}

}  // namespace
}  // namespace nacre::test

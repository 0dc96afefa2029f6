// Tests sums over ranks, with any communicator.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cluster/launcher.h"

namespace nacre {
namespace {

// Returns numbers of very different size, so that another order of additions gives other bits.
template <class T>
std::vector<T> numbers(int rank, int64_t count) {
  Dice dice(rank * 1000 + static_cast<uint64_t>(count));
  std::vector<T> out(count);
  for (T& x : out) {
    const auto fraction = static_cast<double>(dice.next() >> 11) / 9007199254740992.0 - 0.5;
    x = static_cast<T>(std::ldexp(fraction, static_cast<int>(dice.below(40)) - 20));
  }
  return out;
}

template <class T>
std::vector<T> sum_in_order(int size, int64_t count) {
  std::vector<T> sum = numbers<T>(0, count);
  for (int r = 1; r < size; ++r) {
    const std::vector<T> part = numbers<T>(r, count);
    for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  return sum;
}

template <class T>
std::string bits_of(const std::vector<T>& values) {
  std::string bits(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bits.data(), values.data(), bits.size());
  return bits;
}

template <class T>
void check_sums(Launcher& launcher, int64_t count) {
  for (const int size : launcher.sizes()) {
    const std::string expected = bits_of(sum_in_order<T>(size, count));
    launcher.run(size, [&](Communicator& own) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<T> data = numbers<T>(own.rank(), count);
        own.all_reduce(data.data(), count);
        EXPECT_EQ(bits_of(data), expected) << count << " elements on " << size << " ranks";
      }
      const CallCounters counted = own.counters().all_reduce;
      EXPECT_EQ(counted.calls, 3);
      EXPECT_EQ(counted.bytes_sent,
                3 * sum_bytes_sent(sizeof(T) == 4 ? SumType::f32 : SumType::f64, count, own.rank(), size));
    });
  }
}

TEST_P(CommunicatorSuite, sums_have_the_bits_of_additions_in_the_order_of_the_ranks) {
  for (const int64_t count : {0, 1, 2, 3, 7, 1000, 300001}) {
    check_sums<float>(launcher(), count);
    check_sums<double>(launcher(), count);
  }
}

}  // namespace
}  // namespace nacre

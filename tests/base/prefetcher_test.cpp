#include "nacre/base/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "support/threads.h"

namespace nacre {
namespace {

using test::Threads;

TEST(Prefetcher, gives_everything_in_order_for_any_depth_and_number_of_threads) {
  for (const int threads : {1, 2, 4}) {
    const Threads set(threads);
    for (const int depth : {0, 1, 5, 100}) {
      Prefetcher<int64_t> squares(depth, [](int64_t i) { return i * i; });
      for (const int64_t first : {0, 7, 50}) {
        squares.begin(first, 50);
        for (int64_t i = first; i < 50; ++i) ASSERT_EQ(squares.next(), i * i) << threads << " threads, depth " << depth;
      }
    }
  }
}

TEST(Prefetcher, makes_no_more_than_asked_and_drops_what_nobody_took) {
  const Threads set(3);
  std::atomic<int64_t> made = 0;
  Prefetcher<int64_t> numbers(4, [&](int64_t i) {
    ++made;
    return i;
  });
  numbers.begin(0, 1000);
  EXPECT_EQ(numbers.next(), 0);
  numbers.begin(500, 502);
  EXPECT_LE(made, 1 + 4);
  EXPECT_EQ(numbers.next(), 500);
  EXPECT_EQ(numbers.next(), 501);
  numbers.stop();
  EXPECT_LE(made, 1 + 4 + 2);
}

TEST(Prefetcher, a_failure_comes_when_its_turn_comes) {
  const Threads set(2);
  Prefetcher<int64_t> numbers(3, [](int64_t i) {
    if (i == 2) throw std::runtime_error("two");
    return i;
  });
  numbers.begin(0, 5);
  EXPECT_EQ(numbers.next(), 0);
  EXPECT_EQ(numbers.next(), 1);
  EXPECT_THROW(numbers.next(), std::runtime_error);
  EXPECT_EQ(numbers.next(), 3);
}

TEST(BackgroundTasks, one_that_throws_does_not_end_the_process) {
  const Threads set(2);
  std::atomic<bool> ran = false;
  {
    BackgroundTasks tasks;
    tasks.post([&] {
      ran = true;
      throw std::runtime_error("a task must not throw");
    });
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace nacre

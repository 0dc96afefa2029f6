#include "nacre/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/tasks.h"
#include "nacre/base/thread_team.h"

namespace nacre {
namespace {

class Parallel : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(2); }
};

using Chunks = std::set<std::pair<int64_t, int64_t>>;

Chunks chunks_of(int64_t n, int64_t chunk) {
  Chunks seen;
  std::mutex mutex;
  parallel_for(n, chunk, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(seen.emplace(begin, end).second);
  });
  return seen;
}

TEST_P(Parallel, ForCoversEverythingInChunksOfTheProblem) {
  for (const int64_t n : {0, 1, 2, 7, 64, 1000, 1001}) {
    for (const int64_t chunk : {1, 3, 64, 1000, 5000}) {
      Chunks want;
      for (int64_t begin = 0; begin < n; begin += chunk) want.emplace(begin, std::min(n, begin + chunk));
      EXPECT_EQ(chunks_of(n, chunk), want) << n << " by " << chunk;
    }
  }
  EXPECT_EQ(chunks_of(3, 0), chunks_of(3, 1)) << "a chunk has at least one element";
  EXPECT_TRUE(chunks_of(-5, 2).empty());
}

TEST_P(Parallel, TasksRunOnceEach) {
  for (const int64_t n : {0, 1, 5, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(n));
    parallel_tasks(n, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
    for (const auto& r : runs) EXPECT_EQ(r.load(), 1);
  }
}

TEST_P(Parallel, LoopsNest) {
  std::atomic<int64_t> sum{0};
  parallel_for(40, 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      parallel_tasks(20, [&](int64_t j) { sum += i * 20 + j; });
    }
  });
  EXPECT_EQ(sum.load(), 800 * 799 / 2);
}

TEST_P(Parallel, ExceptionsReachTheCaller) {
  EXPECT_THROW(parallel_for(1000, 10,
                            [](int64_t begin, int64_t) {
                              if (begin == 500) throw UserError("loop", "stops");
                            }),
               UserError);
  EXPECT_THROW(parallel_tasks(1, [](int64_t) { throw std::runtime_error("one"); }), std::runtime_error);
  EXPECT_THROW(
      parallel_tasks(8, [](int64_t) { parallel_tasks(8, [](int64_t) { throw RuntimeError("inner", "stops"); }); }),
      RuntimeError);
  // The next loop works as usual.
  std::atomic<int> runs{0};
  parallel_tasks(100, [&](int64_t) { ++runs; });
  EXPECT_EQ(runs.load(), 100);
}

TEST_P(Parallel, ThreadIndexIsInRangeAndOnesOwn) {
  std::vector<std::atomic<int>> inside(static_cast<size_t>(num_threads()));
  parallel_tasks(200, [&](int64_t) {
    const int me = thread_index();
    ASSERT_GE(me, 0);
    ASSERT_LT(me, num_threads());
    EXPECT_EQ(inside[static_cast<size_t>(me)]++, 0) << "two tasks share scratch space";
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    --inside[static_cast<size_t>(me)];
  });
}

INSTANTIATE_TEST_SUITE_P(Threads, Parallel, testing::Values(1, 2, 4, 7));

TEST(NumThreads, AreAsManyAsAskedFor) {
  set_num_threads(4);
  EXPECT_EQ(num_threads(), 4);
  // Each task waits for the others, so fewer than four threads would never finish.
  std::atomic<int> arrived{0};
  const auto start = std::chrono::steady_clock::now();
  parallel_tasks(4, [&](int64_t) {
    ++arrived;
    while (arrived < 4 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20))
      std::this_thread::yield();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_THROW(set_num_threads(0), InternalError);
  EXPECT_THROW(set_num_threads(-3), InternalError);
  EXPECT_EQ(num_threads(), 4);
  set_num_threads(2);
}

TEST(FunctionRef, CallsWhatItRefersTo) {
  int calls = 0;
  const auto add = [&](int by) { return calls += by; };
  const FunctionRef<int(int)> ref = add;
  EXPECT_EQ(ref(2), 2);
  EXPECT_EQ(ref(3), 5);
  const FunctionRef<int(int)> copy = ref;
  EXPECT_EQ(copy(1), 6);
}

TEST(BackgroundTasks, BelongToTheTeamOfTheirMaker) {
  set_num_threads(4);
  std::atomic<int> threads = 0;
  {
    const ThreadTeam team(2);
    BackgroundTasks tasks;
    ASSERT_EQ(tasks.workers(), 1);
    ASSERT_TRUE(tasks.post([&] { threads = num_threads(); }));
  }
  EXPECT_EQ(threads, 2);
  set_num_threads(2);
}

}  // namespace
}  // namespace nacre

#include "nacre/base/task_line.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "nacre/base/parallel.h"
#include "support/threads.h"

namespace nacre {
namespace {

using test::Threads;

// Tasks hold loops of their own, and their ends are handed out in the order in which they came.
TEST(TaskLine, FinishesTasksInOrderOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 4}) {
    const Threads set(threads);
    for (const size_t most : {1, 2, 5}) {
      TaskLine line;
      std::vector<int64_t> sums(60, 0);
      int64_t finished = 0;
      const auto finish = [&] {
        line.finish_first();
        ASSERT_EQ(sums[static_cast<size_t>(finished)], 1000 + finished);
        ++finished;
      };
      for (size_t i = 0; i < sums.size(); ++i) {
        if (line.size() == most) finish();
        line.add([&sums, i] {
          std::atomic<int64_t> sum = static_cast<int64_t>(i);
          parallel_for(1000, 10, [&](int64_t b, int64_t e) { sum += e - b; });
          sums[i] = sum;
        });
        ASSERT_LE(line.size(), most);
      }
      while (line.size() > 0) finish();
      EXPECT_EQ(finished, 60);
    }
  }
}

// While the first task waits for the second one, somebody must run the second one.
TEST(TaskLine, TasksRunBesideEachOther) {
  const Threads set(2);
  TaskLine line;
  std::atomic<int> arrived = 0;
  for (int i = 0; i < 2; ++i) {
    line.add([&] {
      ++arrived;
      for (int k = 0; k < 20000 && arrived < 2; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  line.finish_first();
  EXPECT_EQ(arrived, 2);
  line.finish_first();
}

TEST(TaskLine, AFailureComesWhenItsTurnComes) {
  for (const int threads : {1, 3}) {
    const Threads set(threads);
    TaskLine line;
    int last = 0;
    line.add([] {});
    line.add([] { throw std::runtime_error("second"); });
    line.add([&] { last = 3; });
    line.finish_first();
    EXPECT_THROW(line.finish_first(), std::runtime_error);
    line.finish_first();
    EXPECT_EQ(last, 3);
    EXPECT_EQ(line.size(), 0U);
  }
}

TEST(TaskLine, WhatNobodyFinishedIsDroppedOrWaitedFor) {
  for (const int threads : {1, 3}) {
    const Threads set(threads);
    std::atomic<int> begun = 0, ended = 0;
    {
      TaskLine line;
      for (int i = 0; i < 20; ++i) {
        line.add([&] {
          ++begun;
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          ++ended;
        });
      }
    }
    EXPECT_EQ(begun, ended);
    if (threads == 1) {
      EXPECT_EQ(begun, 0);
    }
  }
}

}  // namespace
}  // namespace nacre

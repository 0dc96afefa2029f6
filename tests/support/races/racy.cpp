// The program `racy KIND` has a race of the named kind, or none. The thread sanitizer must report
// each race and nothing else (finds_races.sh). If it did not, its silence about the tests would
// mean nothing.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "nacre/base/parallel.h"
#include "nacre/base/tasks.h"

namespace nacre {
namespace {

// Waits until this function has been called `others` times with the counter `arrived`, so that the
// calls come from different threads. The sanitizer sees no order in relaxed operations. Gives up
// after some seconds.
void meet(std::atomic<int>& arrived, int others) {
  arrived.fetch_add(1, std::memory_order_relaxed);
  const auto start = std::chrono::steady_clock::now();
  while (arrived.load(std::memory_order_relaxed) < others &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(20))
    std::this_thread::yield();
}

// Lets two tasks of one loop write to one place.
void race_in_a_loop() {
  int place = 0;
  std::atomic<int> arrived{0};
  parallel_tasks(2, [&](int64_t i) {
    meet(arrived, 2);
    place = static_cast<int>(i);
  });
  std::printf("%d\n", place);
}

// Lets two tasks in the background write to one place.
void race_of_tasks() {
  int place = 0;
  std::atomic<int> arrived{0};
  {
    BackgroundTasks tasks;
    for (int i = 0; i < 2; ++i) {
      tasks.post([&, i] {
        meet(arrived, 2);
        place = i;
      });
    }
  }
  std::printf("%d\n", place);
}

// Lets a task in the background write to the place to which its poster writes after posting it.
void race_with_the_poster() {
  int place = 0;
  std::atomic<int> arrived{0};
  {
    BackgroundTasks tasks;
    tasks.post([&] {
      meet(arrived, 2);
      place = 1;
    });
    meet(arrived, 2);
    place = 2;
  }
  std::printf("%d\n", place);
}

// Makes only accesses that are ordered: before, inside and after loops and tasks, in loops within
// loops, and around a task that throws.
void no_race() {
  std::vector<int> values(100, 1);
  for (int round = 0; round < 50; ++round) {
    parallel_tasks(100, [&](int64_t i) { values[static_cast<size_t>(i)] += round; });
    parallel_tasks(
        2, [&](int64_t half) { parallel_tasks(50, [&](int64_t i) { ++values[static_cast<size_t>(half * 50 + i)]; }); });
    for (int& value : values) value -= round;
    {
      BackgroundTasks tasks;
      for (int& value : values) tasks.post([&value] { ++value; });
    }
    for (int& value : values) --value;
    try {
      parallel_tasks(100, [&](int64_t i) {
        --values[static_cast<size_t>(i)];
        if (i == 99) throw std::string("stops");
      });
    } catch (const std::string&) {
      for (int& value : values) value = 1;
    }
  }
}

}  // namespace
}  // namespace nacre

int main(int count, char** arguments) {
  const std::string kind = count == 2 ? arguments[1] : "";
  nacre::set_num_threads(4);
  if (kind == "loop") {
    nacre::race_in_a_loop();
  } else if (kind == "tasks") {
    nacre::race_of_tasks();
  } else if (kind == "poster") {
    nacre::race_with_the_poster();
  } else if (kind == "none") {
    nacre::no_race();
  } else {
    std::fprintf(stderr, "usage: racy loop|tasks|poster|none\n");
    return 2;
  }
  return 0;
}

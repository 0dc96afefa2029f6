// Tests the clock that kills a process. Each test watches a process of its own.
#include "nacre/cluster/end_timer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace nacre {
namespace {

using Clock = std::chrono::steady_clock;

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

struct End {
  bool killed = false;  // whether SIGKILL ended the process
  int code = -1;        // exit code; -1 if a signal ended the process
  double seconds = 0;
};

// Runs `body` in a process of its own, which then ends with the code 7.
End end_of(const std::function<void()>& body) {
  const auto began = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          std::chrono::duration<double>(Clock::now() - began).count()};
}

TEST(EndTimer, kills_a_stopped_process_long_before_its_time_is_over) {
  const End end = end_of([] {
    const EndTimer timer(60);
    sleep_for(0.7);
    raise(SIGSTOP);
    sleep_for(60);
  });
  EXPECT_TRUE(end.killed) << end.code;
  EXPECT_GT(end.seconds, EndTimer::kStopped - 1);
  EXPECT_LT(end.seconds, EndTimer::kStopped + 5);
}

// The thread that sets the clock anew may not have run yet when the process is stopped.
TEST(EndTimer, kills_a_process_that_is_stopped_at_once) {
  for (const bool kept : {false, true}) {
    const End end = end_of([kept] {
      EndTimer timer(60);
      if (kept) timer.keep(60);
      raise(SIGSTOP);
      sleep_for(60);
    });
    EXPECT_TRUE(end.killed) << end.code;
    EXPECT_LT(end.seconds, EndTimer::kStopped + 5);
  }
}

TEST(EndTimer, leaves_a_slow_process_all_of_its_time) {
  const End end = end_of([] {
    const EndTimer timer(60);
    sleep_for(EndTimer::kStopped + 1);
  });
  EXPECT_EQ(end.code, 7);
}

TEST(EndTimer, kills_a_process_when_its_time_is_over) {
  const End end = end_of([] {
    const EndTimer timer(1);
    sleep_for(60);
  });
  EXPECT_TRUE(end.killed) << end.code;
  EXPECT_GT(end.seconds, 0.9);
  EXPECT_LT(end.seconds, 10);
}

TEST(EndTimer, does_nothing_after_its_destruction_unless_it_is_kept) {
  const auto destroyed = [](bool keep) {
    return end_of([keep] {
      {
        EndTimer timer(0.3);
        if (keep) timer.keep(0.6);
      }
      sleep_for(2);
    });
  };
  EXPECT_EQ(destroyed(false).code, 7);
  EXPECT_TRUE(destroyed(true).killed);
}

}  // namespace
}  // namespace nacre

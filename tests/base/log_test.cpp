#include "nacre/base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/base/warnings.h"
#include "support/log_capture.h"

namespace nacre {
namespace {

TEST(HumanNumbers, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(5.0 * (1 << 20)), "5.00 MiB");
  EXPECT_EQ(human_bytes(1.25 * (1 << 30)), "1.25 GiB");
  EXPECT_EQ(human_bytes(2048.0 * (1ULL << 50)), "2048.00 PiB") << "the largest unit";
}

TEST(HumanNumbers, Seconds) {
  EXPECT_EQ(human_seconds(12e-6), "12.0 us");
  EXPECT_EQ(human_seconds(0.31), "310.0 ms");
  EXPECT_EQ(human_seconds(1.5), "1.50 s");
  EXPECT_EQ(human_seconds(59.99), "59.99 s");
  EXPECT_EQ(human_seconds(59.999), "1 min 0 s");
  EXPECT_EQ(human_seconds(95.3072), "1 min 35 s");
  EXPECT_EQ(human_seconds(7200), "2 h 0 min");
  EXPECT_EQ(human_seconds(90000), "1 d 1 h");
}

TEST(HumanNumbers, Counts) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(1166243), "1,166,243");
  EXPECT_EQ(human_count(-999), "-999");
  EXPECT_EQ(human_count(-123456), "-123,456");
  EXPECT_EQ(human_count(-1234567), "-1,234,567");
  EXPECT_EQ(human_count(INT64_MAX), "9,223,372,036,854,775,807");
}

// Returns what the calls of the test write to stdout and stderr.
template <class Calls>
std::string printed(const Calls& calls) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  calls();
  const std::string out = testing::internal::GetCapturedStdout();
  return out + testing::internal::GetCapturedStderr();
}

TEST(Log, WithoutASinkNothingIsPrinted) {
  EXPECT_EQ(printed([] {
              log_info("told");
              log_verbose("detail");
              log_warning("careful");
              Progress progress("reading", 10);
              for (int i = 0; i <= 10; ++i) progress.update(i, "note");
              EXPECT_FALSE(progress.due());
            }),
            "");
}

TEST(Log, ASinkIsToldEverythingAndPrintsNothing) {
  const test::LogCapture log;
  EXPECT_EQ(printed([] {
              log_info("told");
              log_verbose("detail");
              log_warning("careful");
            }),
            "");
  EXPECT_EQ(log.text(), "told\nverbose: detail\nwarning: careful\n");
}

TEST(Log, KeepsEveryWarningOnce) {
  {
    const test::LogCapture log;
    log_note("only a note");
    log_note("warning: marked as one");
    log_warning("kept");
    log_warning("kept");
    EXPECT_EQ(log.text(), "note: only a note\nwarning: marked as one\nwarning: kept\nwarning: kept\n");
  }
  log_warning("kept without a sink");
  const std::vector<std::string> all = warnings_so_far();
  EXPECT_EQ(std::count(all.begin(), all.end(), "kept"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "kept without a sink"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "marked as one"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "only a note"), 0);
}

// A sink that records every state of progress, and says that it has shown all but the first `deaf`
// ones.
struct ProgressSink : LogSink {
  explicit ProgressSink(int deaf_at_first) : deaf(deaf_at_first) {}
  void line(LogKind, const std::string&) override {}
  double progress_interval() const override { return 0; }
  bool progress(const ProgressState& state) override {
    states.push_back(state);
    return deaf-- <= 0;
  }
  void end_progress() override { ++ends; }
  int deaf;
  int ends = 0;
  std::vector<ProgressState> states;
};

TEST(Progress, TellsShareAndNoteUntilTheEnd) {
  const auto sink = std::make_shared<ProgressSink>(1);
  set_log_sink(sink);
  {
    Progress progress("reading", 4);
    set_log_sink(nullptr);  // a Progress reports to the sink that was set when it began
    EXPECT_TRUE(progress.due());
    for (int i = 1; i <= 4; ++i) progress.update(i, std::to_string(i));
    EXPECT_EQ(sink->ends, 0);
  }
  EXPECT_EQ(sink->ends, 1);
  ASSERT_EQ(sink->states.size(), 4u);
  EXPECT_EQ(sink->states[1].title, "reading");
  EXPECT_EQ(sink->states[1].note, "2");
  EXPECT_DOUBLE_EQ(sink->states[1].share, 0.5);
  EXPECT_TRUE(sink->states[1].first) << "the first one was not shown";
  EXPECT_FALSE(sink->states[2].first);
}

TEST(Progress, EndsNothingThatWasNotShown) {
  const auto sink = std::make_shared<ProgressSink>(100);
  set_log_sink(sink);
  { Progress("reading", 1).update(1); }
  set_log_sink(nullptr);
  EXPECT_EQ(sink->states.size(), 1u);
  EXPECT_EQ(sink->ends, 0);
}

TEST(NowSeconds, NeverGoesBack) {
  double last = now_seconds();
  for (int i = 0; i < 1000; ++i) {
    const double now = now_seconds();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace nacre

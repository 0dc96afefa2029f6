#include "nacre/base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/base/terminal.h"
#include "nacre/base/warnings.h"

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

TEST(Log, GoesToStderrByLevel) {
  const auto logged = [](LogLevel level) {
    set_log_level(level);
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    log_info("told");
    log_verbose("detail");
    log_warning("careful");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    set_log_level(LogLevel::info);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(logged(LogLevel::quiet), "warning: careful\n") << "warnings stay";
  EXPECT_EQ(logged(LogLevel::info), "told\nwarning: careful\n");
  EXPECT_EQ(logged(LogLevel::verbose), "told\ndetail\nwarning: careful\n");
}

TEST(Log, KeepsEveryWarningOnce) {
  testing::internal::CaptureStderr();
  log_note("only a note");
  log_note("warning: marked as one");
  log_warning("kept");
  log_warning("kept");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "note: only a note\nwarning: marked as one\nwarning: kept\nwarning: kept\n");
  const std::vector<std::string> all = warnings_so_far();
  EXPECT_EQ(std::count(all.begin(), all.end(), "kept"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "marked as one"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "only a note"), 0);
}

TEST(Progress, FitsEveryWidth) {
  const ProgressLine line{"training", "epoch 12/200  step 3/40  loss 1.2345  val 0.8123", "1 min 3 s left", 0.37};
  for (int columns = 0; columns < 200; ++columns) {
    const std::string text = fit_progress(line, columns);
    EXPECT_LE(static_cast<int>(text.size()), columns) << text;
    if (columns > 4) EXPECT_NE(text.find("37%"), std::string::npos) << columns;
  }
  EXPECT_NE(fit_progress(line, 120).find("[####"), std::string::npos);
  EXPECT_NE(fit_progress(line, 60).find("val 0.8123"), std::string::npos) << "figures are kept longest";
  EXPECT_EQ(fit_progress({"t", "ääääää", "", 1}, 10), "100%  ääää") << "no character is cut in two";
}

TEST(Progress, SaysNothingInAPipeWhenTheWorkIsShort) {
  testing::internal::CaptureStderr();
  {
    Progress progress("reading", 10);
    for (int i = 0; i <= 10; ++i) progress.update(i, "note");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
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

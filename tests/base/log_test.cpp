#include "nacre/base/log.h"

#include <gtest/gtest.h>

#include <cstdint>

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
  EXPECT_EQ(human_seconds(119), "119.00 s");
  EXPECT_EQ(human_seconds(120), "2.0 min");
  EXPECT_EQ(human_seconds(7200), "2.0 h");
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
  EXPECT_EQ(logged(LogLevel::quiet), "");
  EXPECT_EQ(logged(LogLevel::info), "told\nwarning: careful\n");
  EXPECT_EQ(logged(LogLevel::verbose), "told\ndetail\nwarning: careful\n");
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

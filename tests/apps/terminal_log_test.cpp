// What the command line shows of the library's messages; in these tests stderr is no terminal.
#include "terminal_log.h"

#include <gtest/gtest.h>

#include <string>

#include "nacre/base/log.h"
#include "terminal.h"

namespace nacre::cli {
namespace {

template <class Calls>
std::string shown(LogLevel level, const Calls& calls) {
  set_log_level(level);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  log_to_terminal();
  calls();
  set_log_sink(nullptr);
  set_log_level(LogLevel::info);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  return testing::internal::GetCapturedStderr();
}

TEST(TerminalLog, GoesToStderrByLevel) {
  const auto logged = [](LogLevel level) {
    return shown(level, [] {
      log_info("told");
      log_verbose("detail");
      log_warning("careful");
    });
  };
  EXPECT_EQ(logged(LogLevel::quiet), "warning: careful\n") << "warnings stay";
  EXPECT_EQ(logged(LogLevel::info), "told\nwarning: careful\n");
  EXPECT_EQ(logged(LogLevel::verbose), "told\ndetail\nwarning: careful\n");
}

TEST(TerminalLog, NamesDoNotControlTheTerminal) {
  EXPECT_EQ(shown(LogLevel::info, [] { log_info("evil \x1b]0;title\x07 name"); }), "evil \\x1b]0;title\\x07 name\n");
}

TEST(ProgressLine, FitsEveryWidth) {
  const ProgressLine line{"training", "epoch 12/200  step 3/40  loss 1.2345  val 0.8123", "1 min 3 s left", 0.37};
  for (int columns = 0; columns < 200; ++columns) {
    const std::string text = fit_progress(line, columns);
    EXPECT_LE(static_cast<int>(text.size()), columns) << text;
    if (columns > 4) {
      EXPECT_NE(text.find("37%"), std::string::npos) << columns;
    }
  }
  EXPECT_NE(fit_progress(line, 120).find("[####"), std::string::npos);
  EXPECT_NE(fit_progress(line, 60).find("val 0.8123"), std::string::npos) << "figures are kept longest";
  EXPECT_EQ(fit_progress({"t", "ääääää", "", 1}, 10), "100%  ääää") << "no character is cut in two";
}

TEST(TerminalLog, SaysNothingInAPipeWhenTheWorkIsShort) {
  EXPECT_EQ(shown(LogLevel::info,
                  [] {
                    Progress progress("reading", 10);
                    for (int i = 0; i <= 10; ++i) progress.update(i, "note");
                  }),
            "");
}

}  // namespace
}  // namespace nacre::cli

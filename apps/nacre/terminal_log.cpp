#include "terminal_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <mutex>
#include <string>

#include "nacre/base/log.h"
#include "nacre/base/printable.h"
#include "terminal.h"

namespace nacre::cli {
namespace {

std::atomic<LogLevel> g_level{LogLevel::info};

// Returns the line without what could control the terminal, which names in it may contain. The
// styles that this program itself gives to words are kept.
std::string shown(const std::string& line) {
  std::string text = printable(line, /*lines=*/true);
  if (!is_terminal(Stream::err)) return text;
  for (const std::string style : {"[0m", "[1m", "[31m", "[33m"}) {
    const std::string escaped = "\\x1b" + style;
    for (size_t at = text.find(escaped); at != std::string::npos; at = text.find(escaped, at))
      text.replace(at, escaped.size(), "\033" + style);
  }
  return text;
}

// Returns the time left in words, in whole seconds, because it is only a guess.
std::string time_left(double seconds) {
  constexpr double kMinute = 60;
  const double whole = std::max(1.0, std::ceil(seconds));
  return (whole < kMinute ? fmt::format("{:.0f} s", whole) : human_seconds(whole)) + " left";
}

class TerminalLog final : public LogSink {
 public:
  void line(LogKind kind, const std::string& text) override {
    const LogLevel level = g_level.load();
    if (kind == LogKind::verbose && level != LogLevel::verbose) return;
    if (kind == LogKind::info && level == LogLevel::quiet) return;
    put(kind == LogKind::warning ? yellow("warning:", Stream::err) + " " + text : text);
  }

  double progress_interval() const override {
    if (g_level.load() == LogLevel::quiet) return std::numeric_limits<double>::infinity();
    return terminal_ ? 0.1 : 5.0;
  }

  bool progress(const ProgressState& state) override {
    if (g_level.load() == LogLevel::quiet) return false;
    const bool under_way = state.share > 0 && state.share < 1;
    const std::string left = under_way ? time_left(state.seconds / state.share * (1 - state.share)) : "";
    if (terminal_) {
      put_progress({state.title, state.note, left, state.share});
      return true;
    }
    // In a pipe, work that is complete when its progress is first reported gets no line.
    if (state.first && state.share >= 1) return false;
    std::string text = fmt::format("{}: {:.0f}%", state.title, state.share * 100);
    for (const std::string& part : {state.note, left}) text += part.empty() ? "" : "  " + part;
    put(text);
    return true;
  }

  void end_progress() override {
    const std::lock_guard lock(mutex_);
    if (open_) std::fputc('\n', stderr);
    open_ = false;
  }

 private:
  // Writes a line. If progress is shown, the line takes its place, and the next progress appears
  // below.
  void put(const std::string& text) {
    const std::lock_guard lock(mutex_);
    std::fprintf(stderr, "%s%s\n", open_ ? "\r\033[K" : "", shown(text).c_str());
    std::fflush(stderr);
    open_ = false;
  }

  // Writes a line of progress, and keeps the terminal from wrapping it if it was made narrower in
  // the last moment.
  void put_progress(const ProgressLine& text) {
    const std::lock_guard lock(mutex_);
    const int columns = terminal_columns(Stream::err);
    // If the terminal was made narrower, the last progress may cover several of its rows. That
    // progress is then left there, and the new one begins on a new row.
    const char* begin = open_ && columns < columns_ ? "\n" : "\r\033[K";
    std::fprintf(stderr, "%s\033[?7l%s\033[?7h", begin, fit_progress(text, columns - 1).c_str());
    std::fflush(stderr);
    open_ = true;
    columns_ = columns;
  }

  const bool terminal_ = is_terminal(Stream::err);
  std::mutex mutex_;
  bool open_ = false;  // the last line shows progress and is not finished
  int columns_ = 0;    // width of the terminal when that line was written
};

}  // namespace

void set_log_level(LogLevel level) { g_level = level; }

void log_to_terminal() { set_log_sink(std::make_shared<TerminalLog>()); }

}  // namespace nacre::cli

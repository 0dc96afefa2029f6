#include "nacre/base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <vector>

#include "nacre/base/terminal.h"
#include "nacre/base/warnings.h"

#include "nacre/base/printable.h"

namespace nacre {
namespace {

std::atomic<LogLevel> g_level{LogLevel::info};

// State of the last line of the terminal, shared by everything that writes to it.
struct LastLine {
  std::mutex mutex;
  bool open = false;  // the line shows progress and has no line break yet
  int columns = 0;    // width of the terminal when the line was written
};

LastLine& last_line() {
  static LastLine line;
  return line;
}

// Returns `line` with control characters escaped, so that names in it cannot control the terminal.
// On a terminal, the styles that this program itself gives to words stay.
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

// Writes a line in place of a progress line that is shown. The next progress appears below it.
void put(const std::string& line) {
  LastLine& last = last_line();
  const std::lock_guard lock(last.mutex);
  std::fprintf(stderr, "%s%s\n", last.open ? "\r\033[K" : "", shown(line).c_str());
  std::fflush(stderr);
  last.open = false;
}

// Turns off automatic line breaks while writing, so that a terminal that has just become narrower
// does not wrap the line.
void put_progress(const ProgressLine& line) {
  LastLine& last = last_line();
  const std::lock_guard lock(last.mutex);
  const int columns = terminal_columns(Stream::err);
  // On a terminal that has become narrower, the previous line may cover several rows, so leave it
  // and begin a new one.
  const char* begin = last.open && columns < last.columns ? "\n" : "\r\033[K";
  std::fprintf(stderr, "%s\033[?7l%s\033[?7h", begin, fit_progress(line, columns - 1).c_str());
  std::fflush(stderr);
  last.open = true;
  last.columns = columns;
}

void finish_progress() {
  LastLine& last = last_line();
  const std::lock_guard lock(last.mutex);
  if (last.open) std::fputc('\n', stderr);
  last.open = false;
}

// Returns the time in whole seconds, because the guess is no better than that.
std::string time_left(double seconds) {
  constexpr double kMinute = 60;
  const double whole = std::max(1.0, std::ceil(seconds));
  return (whole < kMinute ? fmt::format("{:.0f} s", whole) : human_seconds(whole)) + " left";
}

struct Warnings {
  std::mutex mutex;
  std::vector<std::string> list;
};

Warnings& warnings() {
  static Warnings all;
  return all;
}

}  // namespace

void set_log_level(LogLevel level) { g_level = level; }

void log_info(const std::string& line) {
  if (g_level.load() != LogLevel::quiet) put(line);
}
void log_verbose(const std::string& line) {
  if (g_level.load() == LogLevel::verbose) put(line);
}

void log_warning(const std::string& line) {
  put(yellow("warning:", Stream::err) + " " + line);
  constexpr size_t kMostKept = 1000;
  Warnings& all = warnings();
  const std::lock_guard lock(all.mutex);
  if (all.list.size() < kMostKept && std::find(all.list.begin(), all.list.end(), line) == all.list.end())
    all.list.push_back(line);
}

std::vector<std::string> warnings_so_far() {
  Warnings& all = warnings();
  const std::lock_guard lock(all.mutex);
  return all.list;
}

void log_note(const std::string& note) {
  const std::string mark = kWarningNote;
  if (note.starts_with(mark)) {
    log_warning(note.substr(mark.size()));
  } else {
    log_info("note: " + note);
  }
}

Progress::Progress(std::string title, double total)
    : title_(std::move(title)), total_(total), started_(now_seconds()), terminal_(is_terminal(Stream::err)) {}

bool Progress::due() const {
  const double interval = terminal_ ? 0.1 : 5.0;
  return g_level.load() != LogLevel::quiet && now_seconds() - (printed_ ? last_print_ : started_) >= interval;
}

void Progress::update(double done, const std::string& note) {
  if (g_level.load() == LogLevel::quiet || (!due() && done < total_)) return;
  if (!terminal_ && !printed_ && done >= total_) return;  // Short work shows no line in a pipe.
  const double now = now_seconds();
  last_print_ = now;
  printed_ = true;
  const double share = total_ > 0 ? std::clamp(done / total_, 0.0, 1.0) : 1.0;
  const double elapsed = now - started_;
  const std::string left = share > 0 && share < 1 ? time_left(elapsed / share * (1 - share)) : "";
  if (terminal_) {
    put_progress({title_, note, left, share});
  } else {
    std::string line = fmt::format("{}: {:.0f}%", title_, share * 100);
    for (const std::string& part : {note, left}) line += part.empty() ? "" : "  " + part;
    put(line);
  }
}

Progress::~Progress() {
  if (terminal_ && printed_) finish_progress();
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, units[unit]);
}

std::string human_seconds(double s) {
  if (s < 1e-3) return fmt::format("{:.1f} us", s * 1e6);
  if (s < 1) return fmt::format("{:.1f} ms", s * 1e3);
  if (s < 59.995) return fmt::format("{:.2f} s", s);
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  const auto whole = static_cast<int64_t>(std::llround(std::min(s, 1e15)));
  if (whole < kHour) return fmt::format("{} min {} s", whole / kMinute, whole % kMinute);
  if (whole < kDay) return fmt::format("{} h {} min", whole / kHour, whole % kHour / kMinute);
  return fmt::format("{} d {} h", whole / kDay, whole % kDay / kHour);
}

std::string human_count(int64_t count) {
  std::string digits = std::to_string(count);
  for (int i = static_cast<int>(digits.size()) - 3; i > (count < 0 ? 1 : 0); i -= 3) digits.insert(i, ",");
  return digits;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace nacre

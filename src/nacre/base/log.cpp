#include "nacre/base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>

namespace nacre {
namespace {

std::atomic<LogLevel> g_level{LogLevel::info};

void put(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
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
  if (g_level.load() != LogLevel::quiet) put("warning: " + line);
}

Progress::Progress(std::string title, double total)
    : title_(std::move(title)), total_(total), started_(now_seconds()), terminal_(isatty(STDERR_FILENO) != 0) {}

bool Progress::due() const {
  const double interval = terminal_ ? 0.1 : 5.0;
  return g_level.load() != LogLevel::quiet && now_seconds() - (printed_ ? last_print_ : started_) >= interval;
}

void Progress::update(double done, const std::string& note) {
  if (g_level.load() == LogLevel::quiet || (!due() && done < total_)) return;
  if (!terminal_ && !printed_ && done >= total_) return;  // short work in a pipe: no line at all
  const double now = now_seconds();
  last_print_ = now;
  printed_ = true;
  const double share = total_ > 0 ? std::clamp(done / total_, 0.0, 1.0) : 1.0;
  const double elapsed = now - started_;
  const std::string left = share > 0 && share < 1 ? human_seconds(elapsed / share * (1 - share)) + " left" : "";
  if (terminal_) {
    const int width = 24;
    const int full = static_cast<int>(share * width);
    std::fprintf(stderr, "\r\033[K%s [%s%s] %3.0f%%  %s  %s", title_.c_str(), std::string(full, '#').c_str(),
                 std::string(width - full, '.').c_str(), share * 100, note.c_str(), left.c_str());
    std::fflush(stderr);
  } else {
    put(fmt::format("{}: {:.0f}%  {}  {}", title_, share * 100, note, left));
  }
}

Progress::~Progress() {
  if (terminal_ && printed_) std::fputc('\n', stderr);
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
  if (s < 120) return fmt::format("{:.2f} s", s);
  if (s < 7200) return fmt::format("{:.1f} min", s / 60);
  return fmt::format("{:.1f} h", s / 3600);
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

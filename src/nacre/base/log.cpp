#include "nacre/base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "nacre/base/warnings.h"

namespace nacre {
namespace {

struct InstalledSink {
  std::mutex mutex;
  std::shared_ptr<LogSink> sink;
};

InstalledSink& installed() {
  static InstalledSink one;
  return one;
}

std::shared_ptr<LogSink> log_sink() {
  const std::lock_guard lock(installed().mutex);
  return installed().sink;
}

void tell(LogKind kind, const std::string& line) {
  if (const std::shared_ptr<LogSink> sink = log_sink()) sink->line(kind, line);
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

double LogSink::progress_interval() const { return std::numeric_limits<double>::infinity(); }
bool LogSink::progress(const ProgressState& /*state*/) { return false; }

void set_log_sink(std::shared_ptr<LogSink> sink) {
  const std::lock_guard lock(installed().mutex);
  installed().sink.swap(sink);
}

void log_info(const std::string& line) { tell(LogKind::info, line); }
void log_verbose(const std::string& line) { tell(LogKind::verbose, line); }

void log_warning(const std::string& line) {
  tell(LogKind::warning, line);
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
    : sink_(log_sink()), title_(std::move(title)), total_(total), started_(now_seconds()) {}

bool Progress::due() const {
  return sink_ && now_seconds() - (shown_ ? last_shown_ : started_) >= sink_->progress_interval();
}

void Progress::update(double done, const std::string& note) {
  if (!sink_ || (!due() && done < total_)) return;
  const double now = now_seconds();
  const double share = total_ > 0 ? std::clamp(done / total_, 0.0, 1.0) : 1.0;
  if (!sink_->progress({title_, note, share, now - started_, !shown_})) return;
  last_shown_ = now;
  shown_ = true;
}

Progress::~Progress() {
  if (shown_) sink_->end_progress();
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
